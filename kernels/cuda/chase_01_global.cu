// One thread follows a chain through global memory: each load waits for the one before.
//
// `next[i]` is the element to visit after element i. Nothing can be done ahead, so the time of a
// step is the latency of a load: of L1, L2 or memory, whatever the chain fits into.
// Launch: one thread. `state[0]` is where the chain was left, and is left anew; `cycles[0]` gets the
// clock cycles that the steps took.
extern "C" __global__ void chase_01_global(const unsigned int* next, unsigned int* state,
                                           unsigned long long* cycles, unsigned int n,
                                           unsigned int steps) {
    unsigned int i = state[0];

    long long begin = clock64();
#pragma unroll 16
    for (unsigned int step = 0; step < steps; ++step) {
        i = next[i];
    }
    // The last load must have arrived before the clock is read.
    state[0] = i;
    if (i < n) {
        cycles[0] = clock64() - begin;
    }
}
