// A link of a chain of small kernels: each needs what the one before it left.
//
// New: a result that depends on how many kernels ran, and in which order.
// Bound by its launch: it takes a warp less than a microsecond.
// Launch: one block of at least n threads.
extern "C" __global__ void chain_01_step(unsigned int* __restrict__ numbers, unsigned int amount,
                                         unsigned int n) {
    unsigned int i = threadIdx.x;
    if (i < n) {
        numbers[i] = 3 * numbers[i] + amount;
    }
}
