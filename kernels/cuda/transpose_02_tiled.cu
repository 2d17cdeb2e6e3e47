// Transpose, step 2: turn a tile around in shared memory.
//
// New: the block reads its tile along the rows of `a` and writes it along the rows of `c`. The turn
// happens between the two, in shared memory, where there are no sectors. But there are banks: a
// column of the tile lies in one of them, and a warp that reads it waits 32 times.
// Launch: blocks of 32 x 8 threads, one for each tile of 32 x 32 elements; x runs along a row of `a`.
constexpr unsigned int TILE = 32;

extern "C" __global__ void transpose_02_tiled(const float* __restrict__ a, float* __restrict__ c,
                                              unsigned int rows, unsigned int columns) {
    __shared__ float tile[TILE][TILE];

    // Where am I? One column of `a`, and four rows, eight apart.
    unsigned int column = blockIdx.x * TILE + threadIdx.x;
    unsigned int row = blockIdx.y * TILE + threadIdx.y;

#pragma unroll
    for (unsigned int k = 0; k < TILE; k += 8) {
        if (row + k < rows && column < columns) {
            tile[threadIdx.y + k][threadIdx.x] = a[(size_t)(row + k) * columns + column];
        }
    }
    __syncthreads();

    // Where do I write? The tile that lies mirrored in `c`: x runs along a row there too.
    column = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;

#pragma unroll
    for (unsigned int k = 0; k < TILE; k += 8) {
        if (row + k < columns && column < rows) {
            c[(size_t)(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];
        }
    }
}
