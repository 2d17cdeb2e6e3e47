// run: broken, block 32, check bounds
//   out f32 32*0
//   u64 0
// run: right, block 32, fine
//   out f32 32*0
//   u64 0
extern "C" __global__ void broken(float* out, const float* bias) {
    out[threadIdx.x] += bias[threadIdx.x];
}
extern "C" __global__ void right(float* out, const float* bias) {
    if (bias != nullptr)
        out[threadIdx.x] += bias[threadIdx.x];
}
