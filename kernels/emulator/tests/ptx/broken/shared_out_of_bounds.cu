// run: broken, block 64, shared 128, check bounds
// run: right, block 64, shared 256, fine
extern __shared__ unsigned values[];
extern "C" __global__ void broken() {
    values[threadIdx.x] = threadIdx.x;
}
extern "C" __global__ void right() {
    values[threadIdx.x] = threadIdx.x;
}
