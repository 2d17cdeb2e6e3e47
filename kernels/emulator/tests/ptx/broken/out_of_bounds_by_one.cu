// run: broken, block 32, check bounds
//   out f32 20*0
//   u32 20
// run: right, block 32, fine
//   out f32 20*2
//   u32 20
extern "C" __global__ void broken(float* out, unsigned n) {
    unsigned i = threadIdx.x;
    if (i <= n)
        out[i] = 2.0f;
}
extern "C" __global__ void right(float* out, unsigned n) {
    unsigned i = threadIdx.x;
    if (i < n)
        out[i] = 2.0f;
}
