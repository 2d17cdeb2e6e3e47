// Copies `n` floats that begin at element `offset`: what a start between two sectors costs.
//
// New: thread i reads element `i + offset`. Neighbours are neighbours again, but a warp's 128 bytes
// need not begin where a sector does. Bound by memory.
// Launch: one-dimensional, at least `n` threads. `a` holds `n + offset` floats.
extern "C" __global__ void copy_05_offset(const float* __restrict__ a, float* __restrict__ c,
                                          size_t n, size_t offset) {
    // Where am I?
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        c[i] = a[i + offset];
    }
}
