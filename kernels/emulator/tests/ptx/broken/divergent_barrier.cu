// run: broken, block 32, check sync
//   out u32 32*0
// run: right, block 32, fine
//   out u32 32*1
extern "C" __global__ void broken(unsigned* out) {
    __shared__ unsigned flag;
    if (threadIdx.x % 2 == 0) {
        flag = 1;
        __syncthreads();
        out[threadIdx.x] = flag;
    } else {
        __syncthreads();
        out[threadIdx.x] = flag + 1;
    }
}
extern "C" __global__ void right(unsigned* out) {
    __shared__ unsigned flag;
    if (threadIdx.x == 0)
        flag = 1;
    __syncthreads();
    out[threadIdx.x] = flag;
}
