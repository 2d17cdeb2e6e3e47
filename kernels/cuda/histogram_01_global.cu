// Histogram, step 1: every thread counts its byte in global memory.
//
// Bound by the atomic additions: all threads share 256 counters.
// Launch: one-dimensional, at least `n` threads, blocks of any size. `bins` must be 0 before.
extern "C" __global__ void histogram_01_global(const unsigned char* __restrict__ a,
                                               unsigned int* bins, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        atomicAdd(&bins[a[i]], 1u);
    }
}
