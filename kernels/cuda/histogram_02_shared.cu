// Histogram, step 2: a block counts in shared memory, and adds its counts to the others' at the
// end.
//
// New: counters of the block's own, next to the threads. Bound by conflicts: threads of a warp that
// count different bytes in the same bank wait for each other, and so do threads that count the same
// byte.
// Launch: one-dimensional, `blocks` blocks of THREADS threads. `bins` must be 0 before.
constexpr unsigned int THREADS = 512;
constexpr unsigned int BINS = 256;

extern "C" __global__ void histogram_02_shared(const unsigned char* __restrict__ a,
                                               unsigned int* bins, size_t n, unsigned int blocks) {
    __shared__ unsigned int counts[BINS];
    unsigned int t = threadIdx.x;

    for (unsigned int i = t; i < BINS; i += THREADS) {
        counts[i] = 0;
    }
    __syncthreads();

    size_t first = (size_t)blockIdx.x * THREADS + t;
    for (size_t i = first; i < n; i += (size_t)blocks * THREADS) {
        atomicAdd(&counts[a[i]], 1u);
    }
    __syncthreads();

    for (unsigned int bin = t; bin < BINS; bin += THREADS) {
        if (counts[bin] != 0) {
            atomicAdd(&bins[bin], counts[bin]);
        }
    }
}
