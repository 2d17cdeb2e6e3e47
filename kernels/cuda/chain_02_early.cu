// target: compute_90, compiler: 12.0
// The same link, started early: its blocks may be put in place while the kernel before it still runs.
//
// New: it says that the next kernel may start, and waits itself for the one before it. Both need a launch that allows it
// (the attribute CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION); in any other they do nothing.
// Bound by its launch, of which a part is now hidden behind the kernel before it.
// Launch: one block of at least n threads.
extern "C" __global__ void chain_02_early(unsigned int* __restrict__ numbers, unsigned int amount,
                                          unsigned int n) {
    // From here on the next kernel may be put in place.
    asm volatile("griddepcontrol.launch_dependents;");
    // Behind this the kernel before has ended, and what it wrote is here.
    asm volatile("griddepcontrol.wait;" ::: "memory");
    unsigned int i = threadIdx.x;
    if (i < n) {
        numbers[i] = 3 * numbers[i] + amount;
    }
}
