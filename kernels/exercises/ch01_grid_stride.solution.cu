// Exercise: a grid that fits any n.
//
// Let every thread add further elements until all are done, in steps of the number of threads in
// the whole grid. `cargo book exercise ch01 grid_stride` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch01_grid_stride(const float* __restrict__ a,
                                            const float* __restrict__ b, float* __restrict__ c,
                                            size_t n) {
    size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    // Your turn: begin.
    size_t threads = (size_t)gridDim.x * blockDim.x;
    for (size_t i = first; i < n; i += threads) {
        c[i] = a[i] + b[i];
    }
    // Your turn: end.
}
