// Exercise: once more with the same result.
//
// Make the kernel right however often a graph launches it: c is twice a afterwards, and each launch finds in c what the
// last one left.
// `cargo book exercise ch07 replay` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch07_replay(const float* __restrict__ a, float* __restrict__ c, size_t n,
                                       size_t first, size_t length) {
    size_t in_part = (size_t)blockIdx.x * blockDim.x + threadIdx.x, i = first + in_part;
    if (in_part >= length || i >= n) {
        return;
    }
    // Your turn: begin.
    float sum = 0.0f;
    for (int time = 0; time < 2; ++time) {
        sum += a[i];
    }
    c[i] = sum;
    // Your turn: end.
}
