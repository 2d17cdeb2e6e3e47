// A histogram: threads that meet in a bin overwrite each other. Only the store is looked at here, so each thread has a value
// of its own.
//
// run: broken, block 64, check race
//   in u32 64*5
//   out u32 0
// run: right, block 64, fine
//   in u32 64*5
//   out u32 63
extern "C" __global__ void broken(const unsigned* x, unsigned* out) {
    __shared__ unsigned last[8];
    unsigned i = threadIdx.x;
    last[x[i] % 8] = i;
    __syncthreads();
    if (i == 0)
        *out = last[5];
}
extern "C" __global__ void right(const unsigned* x, unsigned* out) {
    __shared__ unsigned last[8];
    unsigned i = threadIdx.x;
    if (i < 8)
        last[i] = 0;
    __syncthreads();
    atomicMax(&last[x[i] % 8], i);
    __syncthreads();
    if (i == 0)
        *out = last[5];
}
