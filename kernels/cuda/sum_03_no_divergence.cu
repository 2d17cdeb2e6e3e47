// Sum, step 3: the same tree, and the threads that work are neighbours.
//
// New: thread `t` takes the t-th pair of the round, so that whole warps work and whole warps are
// done. Bound by shared memory: the pairs lie `2 * step` words apart, and words a multiple of 32
// apart lie in the same bank.
// Launch: as step 2.
constexpr unsigned int THREADS = 256;

extern "C" __global__ void sum_03_no_divergence(const float* __restrict__ a,
                                                float* __restrict__ partials, size_t n) {
    __shared__ float s[THREADS];
    unsigned int t = threadIdx.x;

    // Load. Where there is no element, 0 is added: it changes no sum.
    size_t i = (size_t)blockIdx.x * THREADS + t;
    s[t] = i < n ? a[i] : 0.0f;
    __syncthreads();

    for (unsigned int step = 1; step < THREADS; step *= 2) {
        unsigned int left = 2 * step * t;
        if (left < THREADS) {
            s[left] += s[left + step];
        }
        __syncthreads();
    }

    if (t == 0) {
        partials[blockIdx.x] = s[0];
    }
}
