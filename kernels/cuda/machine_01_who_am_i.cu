// Every block says what it was compiled for and where it ran.
//
// Launch: `blocks` blocks of any size; the first thread of each block writes four words.
extern "C" __global__ void machine_01_who_am_i(unsigned int* __restrict__ answers,
                                               unsigned int blocks) {
    // Where am I?
    unsigned int block = blockIdx.x;

    // Is there anything to do?
    if (block >= blocks || threadIdx.x != 0) {
        return;
    }

    // The multiprocessor that this block runs on, and one more than the largest such number on this
    // device. Both are special registers of PTX; CUDA C++ has no name for them.
    unsigned int multiprocessor, multiprocessors;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));

    // __CUDA_ARCH__ was fixed when this file became PTX: the driver may have translated that for a
    // newer device.
    answers[4 * block + 0] = __CUDA_ARCH__;
    answers[4 * block + 1] = warpSize;
    answers[4 * block + 2] = multiprocessor;
    answers[4 * block + 3] = multiprocessors;
}
