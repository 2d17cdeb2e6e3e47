// The second barrier of a loop over tiles is missing: the warp that writes may overwrite what the other still reads.
//
// run: broken, block 64, check race
//   in f32 128*1
//   out f32 64*0
// run: right, block 64, fine
//   in f32 128*1
//   out f32 64*4
extern "C" __global__ void broken(const float* x, float* out) {
    __shared__ float tile[32];
    unsigned i = threadIdx.x;
    float sum = 0;
    for (unsigned step = 0; step < 4; step++) {
        if (i >= 32)
            tile[i - 32] = x[32 * step + i - 32];
        __syncthreads();
        sum += tile[i % 32];
    }
    out[i] = sum;
}
extern "C" __global__ void right(const float* x, float* out) {
    __shared__ float tile[32];
    unsigned i = threadIdx.x;
    float sum = 0;
    for (unsigned step = 0; step < 4; step++) {
        if (i >= 32)
            tile[i - 32] = x[32 * step + i - 32];
        __syncthreads();
        sum += tile[i % 32];
        __syncthreads();
    }
    out[i] = sum;
}
