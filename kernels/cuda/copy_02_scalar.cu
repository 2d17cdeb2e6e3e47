// Copy with 4-byte loads and stores: one thread, one float.
//
// Bound by memory, and yet slower than it: a multiprocessor keeps only so many loads under way at
// once, and each of these asks for 4 bytes a thread.
// Launch: one-dimensional, at least `n` threads.
extern "C" __global__ void copy_02_scalar(const float* __restrict__ a, float* __restrict__ c,
                                          size_t n) {
    // Where am I?
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        c[i] = a[i];
    }
}
