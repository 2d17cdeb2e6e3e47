// Blocks that take their time, and say where and when they ran.
//
// Each block keeps its place for `cycles` clock cycles of its multiprocessor, the block with number
// b for (1 + b % unequal) times as many. It does nothing meanwhile: only the first thread spins, and
// the others leave at once.
// Launch: one-dimensional, `blocks` blocks of any size.
extern "C" __global__ void schedule_01_spin(unsigned int* __restrict__ multiprocessor,
                                            unsigned long long* __restrict__ begin,
                                            unsigned long long* __restrict__ end,
                                            unsigned int blocks, unsigned int cycles,
                                            unsigned int unequal) {
    unsigned int block = blockIdx.x;

    // Is there anything to do?
    if (block >= blocks || threadIdx.x != 0) {
        return;
    }

    // Where and when am I? Special registers of PTX, for which CUDA C++ has no name: the
    // multiprocessor, and a clock in nanoseconds that all multiprocessors share.
    unsigned int here;
    unsigned long long nanoseconds;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    multiprocessor[block] = here;
    begin[block] = nanoseconds;

    // Wait, by the multiprocessor's own clock.
    long long enough = (long long)cycles * (1 + block % unequal);
    long long start = clock64();
    while (clock64() - start < enough) {
    }

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    end[block] = nanoseconds;
}
