// run: broken, block 32, check bounds
//   in u32 16*1 16*0
// run: right, block 32, fine
//   in u32 32*1
extern "C" __global__ void broken(const unsigned* x) {
    if (x[threadIdx.x] == 0)
        __trap();
}
extern "C" __global__ void right(const unsigned* x) {
    if (x[threadIdx.x] == 0)
        __trap();
}
