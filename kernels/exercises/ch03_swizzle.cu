// Exercise: exchanged columns.
//
// Say at which place of its row the tile keeps a column, so that neither a row nor a column of it
// meets a bank conflict. `cargo book exercise ch03 swizzle` checks it. Stuck? Add `--hint`.
constexpr unsigned int TILE = 32;

// Where row `row` of the tile keeps column `column`: a number from 0 to 31.
__device__ unsigned int place(unsigned int row, unsigned int column) {
    // Your turn: begin.
    return column;
    // Your turn: end.
}

extern "C" __global__ void ch03_swizzle(const float* __restrict__ a, float* __restrict__ c,
                                        unsigned int rows, unsigned int columns) {
    __shared__ float tile[TILE][TILE];

    unsigned int column = blockIdx.x * TILE + threadIdx.x;
    unsigned int row = blockIdx.y * TILE + threadIdx.y;
    for (unsigned int k = 0; k < TILE; k += 8) {
        if (row + k < rows && column < columns) {
            tile[threadIdx.y + k][place(threadIdx.y + k, threadIdx.x)] =
                a[(size_t)(row + k) * columns + column];
        }
    }
    __syncthreads();

    column = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
    for (unsigned int k = 0; k < TILE; k += 8) {
        if (row + k < columns && column < rows) {
            c[(size_t)(row + k) * rows + column] =
                tile[threadIdx.x][place(threadIdx.x, threadIdx.y + k)];
        }
    }
}
