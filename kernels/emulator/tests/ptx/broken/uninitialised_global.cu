// run: broken, block 32, check init
//   in f32 32*1
//   new 128
// run: right, block 32, fine
//   in f32 32*1
//   new 128
extern "C" __global__ void broken(const float* x, float* sum) {
    sum[threadIdx.x] += x[threadIdx.x];
}
extern "C" __global__ void right(const float* x, float* sum) {
    sum[threadIdx.x] = x[threadIdx.x];
    sum[threadIdx.x] += x[threadIdx.x];
}
