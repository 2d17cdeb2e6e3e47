// Exercise: one page after the other.
//
// Let neighbouring threads take neighbouring floats, so that a warp works in one page and not in
// thirty-two. `cargo book exercise ch06 order` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch06_order(const float* __restrict__ a, float* __restrict__ c,
                                      size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    // Your turn: begin.
    if (i < n) {
        // Thread 0 takes the first row's first float, thread 1 the second row's first.
        size_t rows = n < 32 ? n : 32;
        size_t columns = n / rows;
        size_t at = i < rows * columns ? i % rows * columns + i / rows : i;
        c[at] = a[at];
    }
    // Your turn: end.
}
