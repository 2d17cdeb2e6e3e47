// One thread follows a chain through shared memory.
//
// New: the chain is copied into shared memory first.
// Launch: one block of any size, of which one thread follows. `n` is at most 4096.
constexpr unsigned int MOST = 4096;

extern "C" __global__ void chase_02_shared(const unsigned int* next, unsigned int* state,
                                           unsigned long long* cycles, unsigned int n,
                                           unsigned int steps) {
    __shared__ unsigned int chain[MOST];
    for (unsigned int i = threadIdx.x; i < n && i < MOST; i += blockDim.x) {
        chain[i] = next[i];
    }
    __syncthreads();
    if (threadIdx.x != 0) {
        return;
    }

    unsigned int i = state[0];
    long long begin = clock64();
#pragma unroll 16
    for (unsigned int step = 0; step < steps; ++step) {
        i = chain[i];
    }
    // The last load must have arrived before the clock is read.
    state[0] = i;
    if (i < n) {
        cycles[0] = clock64() - begin;
    }
}
