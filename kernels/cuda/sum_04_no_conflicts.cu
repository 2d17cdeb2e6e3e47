// Sum, step 4: the same tree from the other end, and neighbours lie side by side.
//
// New: the first half adds the second half, then the first quarter the second quarter. The threads
// of a warp touch 32 neighbouring words, one in each bank. Bound by memory and by the rounds: a
// block takes eight barriers for 256 elements.
// Launch: as step 2.
constexpr unsigned int THREADS = 256;

extern "C" __global__ void sum_04_no_conflicts(const float* __restrict__ a,
                                               float* __restrict__ partials, size_t n) {
    __shared__ float s[THREADS];
    unsigned int t = threadIdx.x;

    // Load. Where there is no element, 0 is added: it changes no sum.
    size_t i = (size_t)blockIdx.x * THREADS + t;
    s[t] = i < n ? a[i] : 0.0f;
    __syncthreads();

    for (unsigned int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) {
            s[t] += s[t + step];
        }
        __syncthreads();
    }

    if (t == 0) {
        partials[blockIdx.x] = s[0];
    }
}
