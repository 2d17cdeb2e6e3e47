// A tree reduction without the barrier between its steps.
//
// run: broken, block 128, check race
//   in f32 128*1
//   out f32 0
// run: right, block 128, fine
//   in f32 128*1
//   out f32 128
extern "C" __global__ void broken(const float* x, float* out) {
    __shared__ float sums[128];
    unsigned i = threadIdx.x;
    sums[i] = x[i];
    __syncthreads();
    for (unsigned half = 64; half > 0; half /= 2)
        if (i < half)
            sums[i] += sums[i + half];
    if (i == 0)
        *out = sums[0];
}
extern "C" __global__ void right(const float* x, float* out) {
    __shared__ float sums[128];
    unsigned i = threadIdx.x;
    sums[i] = x[i];
    __syncthreads();
    for (unsigned half = 64; half > 0; half /= 2) {
        if (i < half)
            sums[i] += sums[i + half];
        __syncthreads();
    }
    if (i == 0)
        *out = sums[0];
}
