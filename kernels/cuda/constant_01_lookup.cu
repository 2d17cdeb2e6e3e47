// Follows a table in constant memory, with as many different addresses in a warp as the caller asks.
//
// Constant memory has a small cache of its own, made for the case that all threads of a warp want
// the same word: it serves one address at a time. Bound by the number of different addresses.
// Launch: one-dimensional, at least `n` threads. `distinct` is 1 to 32.
constexpr unsigned int LEN = 256;

// Entry i leads to entry i + 32, around the end: addresses that differ at first differ always.
struct Table {
    unsigned int next[LEN];

    __device__ constexpr Table() : next() {
        for (unsigned int i = 0; i < LEN; ++i) {
            next[i] = (i + 32) % LEN;
        }
    }
};

__constant__ Table table;

extern "C" __global__ void constant_01_lookup(unsigned int* __restrict__ c, unsigned int distinct,
                                              unsigned int steps, unsigned int n) {
    // Where am I?
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        unsigned int entry = i % 32 % distinct;
        for (unsigned int step = 0; step < steps; ++step) {
            entry = table.next[entry % LEN];
        }
        c[i] = entry;
    }
}
