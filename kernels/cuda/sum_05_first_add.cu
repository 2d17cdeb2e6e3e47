// Sum, step 5: the first addition happens on the way in.
//
// New: each thread loads two elements and adds them before the tree begins. In step 4 half of the
// threads only loaded; now the same tree serves twice as many elements.
// Launch: as step 2, with one block for every 2 * THREADS elements.
constexpr unsigned int THREADS = 256;

extern "C" __global__ void sum_05_first_add(const float* __restrict__ a,
                                            float* __restrict__ partials, size_t n) {
    __shared__ float s[THREADS];
    unsigned int t = threadIdx.x;

    // Load two. Where there is no element, 0 is added: it changes no sum.
    size_t i = (size_t)blockIdx.x * (2 * THREADS) + t;
    s[t] = (i < n ? a[i] : 0.0f) + (i + THREADS < n ? a[i + THREADS] : 0.0f);
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
