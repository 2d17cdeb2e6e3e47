// run: broken, block 4, check bounds
//   in f32 17*1
//   out f32 4*0
// run: right, block 4, fine
//   in f32 17*1
//   out f32 4*4
extern "C" __global__ void broken(const float* x, float* out) {
    float4 v = reinterpret_cast<const float4*>(x + 1)[threadIdx.x];
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
extern "C" __global__ void right(const float* x, float* out) {
    const float* v = x + 1 + 4 * threadIdx.x;
    out[threadIdx.x] = v[0] + v[1] + v[2] + v[3];
}
