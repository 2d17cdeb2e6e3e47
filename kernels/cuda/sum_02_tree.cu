// Sum, step 2: a block adds its elements up in shared memory, as a tree.
//
// New: the threads of a block agree first, and a block leaves one number. In each round half of the
// threads that are left add their neighbour's number, and a barrier keeps the rounds apart. Bound
// by instructions: in every round, threads that work and threads that do not share a warp.
// Launch: one-dimensional, blocks of THREADS threads, one for every THREADS elements and at least
// one. The kernel is launched again on `partials` until one number is left.
constexpr unsigned int THREADS = 256;

extern "C" __global__ void sum_02_tree(const float* __restrict__ a, float* __restrict__ partials,
                                       size_t n) {
    __shared__ float s[THREADS];
    unsigned int t = threadIdx.x;

    // Load. Where there is no element, 0 is added: it changes no sum.
    size_t i = (size_t)blockIdx.x * THREADS + t;
    s[t] = i < n ? a[i] : 0.0f;
    __syncthreads();

    for (unsigned int step = 1; step < THREADS; step *= 2) {
        if (t % (2 * step) == 0) {
            s[t] += s[t + step];
        }
        __syncthreads();
    }

    if (t == 0) {
        partials[blockIdx.x] = s[0];
    }
}
