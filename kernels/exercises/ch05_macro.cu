// Exercise: what a macro pastes.
//
// Mend the macro, so that it is a sum wherever it stands. A `-D` on the compiler's command line is a macro too.
// `cargo book exercise ch05 macro` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch05_macro(const float* __restrict__ a, const float* __restrict__ b,
                                      float* __restrict__ c, size_t n) {
    // Your turn: begin.
#define SUM(x, y) x + y
    // Your turn: end.
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = 0.5f * SUM(2.0f * a[i], 2.0f * b[i]);
    }
}
