// Exercise: a constant that the launch does not know.
//
// The block's size was written into the source when it was compiled for blocks of 128 threads. Whoever launches it now uses
// blocks of 256.
// `cargo book exercise ch05 constant` checks it. Stuck? Add `--hint`.
#ifndef BLOCK
#define BLOCK 128
#endif

extern "C" __global__ void ch05_constant(const float* __restrict__ a, const float* __restrict__ b,
                                         float* __restrict__ c, size_t n) {
    // Your turn: begin.
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    // Your turn: end.
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
