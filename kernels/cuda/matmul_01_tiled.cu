// Matrix product by hand, one step: tiles of both matrices in shared memory.
//
// New: c = a b, all row by row. A block computes a tile of TILE x TILE elements of `c`. It walks
// along a row of tiles of `a` and down a column of tiles of `b`, and what it has loaded serves TILE
// threads. Bound by shared memory: every fused multiply-add needs two loads from it.
// Launch: blocks of TILE x TILE threads, one for each tile of `c`; x runs along a row.
constexpr unsigned int TILE = 32;

extern "C" __global__ void matmul_01_tiled(const float* __restrict__ a, const float* __restrict__ b,
                                           float* __restrict__ c, unsigned int rows,
                                           unsigned int inner, unsigned int columns) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];

    unsigned int row = blockIdx.y * TILE + threadIdx.y;
    unsigned int column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;

    for (unsigned int first = 0; first < inner; first += TILE) {
        // Load. Where there is no element, 0 is multiplied: it changes no sum.
        unsigned int along = first + threadIdx.x;
        unsigned int down = first + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] =
            row < rows && along < inner ? a[(size_t)row * inner + along] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] =
            down < inner && column < columns ? b[(size_t)down * columns + column] : 0.0f;
        __syncthreads();

        // ANCHOR: multiply
#pragma unroll
        for (unsigned int k = 0; k < TILE; k++) {
            sum = fmaf(tile_a[threadIdx.y][k], tile_b[k][threadIdx.x], sum);
        }
        // ANCHOR_END: multiply
        __syncthreads();
    }

    if (row < rows && column < columns) {
        c[(size_t)row * columns + column] = sum;
    }
}
