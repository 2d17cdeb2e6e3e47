// run: broken, block 32, check bounds
//   freed 128
// run: right, block 32, fine
//   out f32 32*1
extern "C" __global__ void broken(float* x) {
    x[threadIdx.x] = 1.0f;
}
extern "C" __global__ void right(float* x) {
    x[threadIdx.x] = 1.0f;
}
