// Two warps wait for each other at barriers of two numbers.
//
// run: broken, block 64, check bounds
// run: right, block 64, fine
extern "C" __global__ void broken() {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;");
    else
        asm volatile("bar.sync 2, 64;");
}
extern "C" __global__ void right() {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;");
    else
        asm volatile("bar.sync 1, 64;");
}
