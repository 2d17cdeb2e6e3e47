// Exercise: the edge of the matrix.
//
// Copy the block's part of the tile to c, but only the elements that c has. `cargo book exercise
// ch03 edges` checks it. Stuck? Add `--hint`.
constexpr unsigned int TILE = 32;

extern "C" __global__ void ch03_edges(const float* __restrict__ a, float* __restrict__ c,
                                      unsigned int rows, unsigned int columns) {
    __shared__ float tile[TILE][TILE + 1];

    unsigned int column = blockIdx.x * TILE + threadIdx.x;
    unsigned int row = blockIdx.y * TILE + threadIdx.y;
    for (unsigned int k = 0; k < TILE; k += 8) {
        if (row + k < rows && column < columns) {
            tile[threadIdx.y + k][threadIdx.x] = a[(size_t)(row + k) * columns + column];
        }
    }
    __syncthreads();

    column = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
    // Your turn: begin.
    for (unsigned int k = 0; k < TILE; k += 8) {
        c[(size_t)(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];
    }
    // Your turn: end.
}
