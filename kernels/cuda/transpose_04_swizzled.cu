// Transpose, step 4: the same without the waste.
//
// New: no padding; instead row r of the tile is stored with its columns exchanged, column j at place
// `j ^ r`. Within a row that is only another order, and a column lies in 32 different banks again.
// The name of such a scheme is a swizzle.
// Launch: blocks of 32 x 8 threads, one for each tile of 32 x 32 elements; x runs along a row of `a`.
constexpr unsigned int TILE = 32;

extern "C" __global__ void transpose_04_swizzled(const float* __restrict__ a, float* __restrict__ c,
                                                 unsigned int rows, unsigned int columns) {
    __shared__ float tile[TILE][TILE];

    // Where am I? One column of `a`, and four rows, eight apart.
    unsigned int column = blockIdx.x * TILE + threadIdx.x;
    unsigned int row = blockIdx.y * TILE + threadIdx.y;

#pragma unroll
    for (unsigned int k = 0; k < TILE; k += 8) {
        if (row + k < rows && column < columns) {
            unsigned int place = threadIdx.x ^ (threadIdx.y + k);
            tile[threadIdx.y + k][place] = a[(size_t)(row + k) * columns + column];
        }
    }
    __syncthreads();

    // Where do I write? The tile that lies mirrored in `c`: x runs along a row there too.
    column = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;

#pragma unroll
    for (unsigned int k = 0; k < TILE; k += 8) {
        if (row + k < columns && column < rows) {
            unsigned int place = (threadIdx.y + k) ^ threadIdx.x;
            c[(size_t)(row + k) * rows + column] = tile[threadIdx.x][place];
        }
    }
}
