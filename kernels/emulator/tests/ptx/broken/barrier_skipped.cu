// run: broken, block 64, check sync
//   out u32 64*0
// run: right, block 64, fine
//   out u32 64*1
extern "C" __global__ void broken(unsigned* out) {
    unsigned i = threadIdx.x;
    if (i < 40)
        __syncthreads();
    out[i] = 1;
}
// Threads that have exited are waited for no more.
extern "C" __global__ void right(unsigned* out) {
    unsigned i = threadIdx.x;
    out[i] = 1;
    if (i >= 40)
        return;
    __syncthreads();
    out[i] = 1;
}
