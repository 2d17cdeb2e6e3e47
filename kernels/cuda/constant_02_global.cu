// Follows the same table in global memory.
//
// New: the table is an argument, and its loads go through the L1 cache. That one serves all the
// words of a warp that lie in one line of 128 bytes at once: it does not matter how many they are.
// Launch: one-dimensional, at least `n` threads. `distinct` is 1 to 32; `table` holds `LEN`
// entries.
constexpr unsigned int LEN = 256;

extern "C" __global__ void constant_02_global(const unsigned int* __restrict__ table,
                                              unsigned int* __restrict__ c, unsigned int distinct,
                                              unsigned int steps, unsigned int n) {
    // Where am I?
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        unsigned int entry = i % 32 % distinct;
        for (unsigned int step = 0; step < steps; ++step) {
            entry = table[entry % LEN];
        }
        c[i] = entry;
    }
}
