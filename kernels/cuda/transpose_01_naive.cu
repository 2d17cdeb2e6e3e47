// Transpose, step 1: read along the rows, write along the columns.
//
// A warp reads 32 neighbours, 4 sectors, and writes them `rows` elements apart, 32 sectors of which
// it fills an eighth each. Bound by the stores.
// Launch: blocks of 32 x 8 threads, one for each tile of 32 x 32 elements; x runs along a row of `a`.
constexpr unsigned int TILE = 32;

extern "C" __global__ void transpose_01_naive(const float* __restrict__ a, float* __restrict__ c,
                                              unsigned int rows, unsigned int columns) {
    // Where am I? One column of `a`, and four rows, eight apart.
    unsigned int column = blockIdx.x * TILE + threadIdx.x;
    unsigned int row = blockIdx.y * TILE + threadIdx.y;

#pragma unroll
    for (unsigned int k = 0; k < TILE; k += 8) {
        if (row + k < rows && column < columns) {
            c[(size_t)column * rows + row + k] = a[(size_t)(row + k) * columns + column];
        }
    }
}
