// Transpose, step 3: a column more than the tile needs.
//
// New: rows of the tile are 33 words long, so that each begins one bank further than the one above
// it. A column of the tile lies in 32 different banks. The price is a column of shared memory that
// nobody uses.
// Launch: blocks of 32 x 8 threads, one for each tile of 32 x 32 elements; x runs along a row of `a`.
constexpr unsigned int TILE = 32;

extern "C" __global__ void transpose_03_padded(const float* __restrict__ a, float* __restrict__ c,
                                               unsigned int rows, unsigned int columns) {
    __shared__ float tile[TILE][TILE + 1];

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
