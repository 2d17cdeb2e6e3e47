// Exercise: neighbours for neighbours.
//
// Let threadIdx.x run along the rows of the matrices, so that a warp touches 4 sectors with each
// request. `cargo book exercise ch03 coalesced` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch03_coalesced(const float* __restrict__ a, float* __restrict__ c,
                                          unsigned int rows, unsigned int columns) {
    // Your turn: begin.
    for (unsigned int k = 0; k < 32; k += 8) {
        unsigned int row = blockIdx.y * 32 + threadIdx.x;
        unsigned int column = blockIdx.x * 32 + threadIdx.y + k;
        if (row < rows && column < columns) {
            size_t i = (size_t)row * columns + column;
            c[i] = a[i] + a[i];
        }
    }
    // Your turn: end.
}
