// Exercise: one page after the other.
//
// Let neighbouring threads take neighbouring floats, so that a warp works in one page and not in
// thirty-two. `cargo book exercise ch06 order` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch06_order(const float* __restrict__ a, float* __restrict__ c,
                                      size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    // Your turn: begin.
    if (i < n) {
        c[i] = a[i];
    }
    // Your turn: end.
}
