// Exercise: look where you know it lies.
//
// The headers rise from page to page: take the smallest of each eight without touching the seven
// pages that cannot hold it. `cargo book exercise ch06 headers` checks it. Stuck? Add `--hint`.
constexpr int PAGE = 1024; // floats in 4096 bytes

extern "C" __global__ void ch06_headers(const float* __restrict__ a, float* __restrict__ c,
                                        size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    // Your turn: begin.
    if (i < n) {
        c[i] = a[8 * i * PAGE];
    }
    // Your turn: end.
}
