// Exercise: sixteen bytes at a time.
//
// Load and store the four elements of this thread with one 16-byte access each, and add one by one
// what is left at the end. `cargo book exercise ch01 float4` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch01_float4(const float* __restrict__ a, const float* __restrict__ b,
                                       float* __restrict__ c, size_t n) {
    size_t first = 4 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);

    // Your turn: begin.
    for (size_t i = first; i < first + 4 && i < n; ++i) {
        c[i] = a[i] + b[i];
    }
    // Your turn: end.
}
