// Exercise: results side by side.
//
// Write the n results to the front of c, side by side, so that they fill pages instead of being
// spread over them. `cargo book exercise ch06 packed` checks it. Stuck? Add `--hint`.
constexpr int PAGE = 1024; // floats in 4096 bytes

extern "C" __global__ void ch06_packed(const float* __restrict__ a, float* __restrict__ c,
                                       size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    // Your turn: begin.
    if (i < n) {
        c[i] = a[i * PAGE];
    }
    // Your turn: end.
}
