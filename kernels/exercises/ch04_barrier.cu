// Exercise: what keeps the rounds apart?
//
// Let no thread read a number of the tree that another thread has yet to write.
// `cargo book exercise ch04 barrier` checks it. Stuck? Add `--hint`.
constexpr unsigned int THREADS = 256;

extern "C" __global__ void ch04_barrier(const float* __restrict__ a, float* __restrict__ partials,
                                        size_t n) {
    __shared__ float s[THREADS];
    unsigned int t = threadIdx.x;
    size_t i = (size_t)blockIdx.x * THREADS + t;
    s[t] = i < n ? a[i] : 0.0f;
    __syncthreads();

    // Your turn: begin.
    for (unsigned int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step) {
            s[t] += s[t + step];
        }
    }
    // Your turn: end.

    if (t == 0) {
        partials[blockIdx.x] = s[0];
    }
}
