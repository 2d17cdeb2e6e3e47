// run: broken, block 64, check init
//   in f32 64*1
//   out f32 64*0
// run: right, block 64, fine
//   in f32 64*1
//   out f32 2 62*3 2
extern "C" __global__ void broken(const float* x, float* out) {
    __shared__ float tile[66];
    unsigned i = threadIdx.x;
    tile[i + 1] = x[i];
    __syncthreads();
    // Nobody has written the two cells at the ends.
    out[i] = tile[i] + tile[i + 1] + tile[i + 2];
}
extern "C" __global__ void right(const float* x, float* out) {
    __shared__ float tile[66];
    unsigned i = threadIdx.x;
    tile[i + 1] = x[i];
    if (i == 0)
        tile[0] = tile[65] = 0.0f;
    __syncthreads();
    out[i] = tile[i] + tile[i + 1] + tile[i + 2];
}
