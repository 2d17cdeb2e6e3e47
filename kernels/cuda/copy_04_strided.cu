// Gathers every `stride`-th float: what a load costs whose neighbours are not neighbours.
//
// New: thread i reads element `i * stride`. It writes element i, as before, so that only the load
// changes. Bound by the sectors that the loads touch.
// Launch: one-dimensional, at least `n` threads. `a` holds `n * stride` floats.
extern "C" __global__ void copy_04_strided(const float* __restrict__ a, float* __restrict__ c,
                                           size_t n, size_t stride) {
    // Where am I?
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        c[i] = a[i * stride];
    }
}
