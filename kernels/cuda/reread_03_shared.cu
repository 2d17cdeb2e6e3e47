// Every block reads 4096 floats of its shared memory over and over.
//
// New: the block copies the 16 KB into shared memory first, where the program decides what is kept,
// and not a cache. Bound by shared memory.
// Launch: `blocks` blocks of 1024 threads; `sums` holds 1024 floats for every block.
extern "C" __global__ void reread_03_shared(const float* __restrict__ a, float* __restrict__ sums,
                                            unsigned int rounds, unsigned int blocks) {
    __shared__ float4 quad[1024];
    quad[threadIdx.x] = reinterpret_cast<const float4*>(a)[threadIdx.x];
    __syncthreads();

    float sum = 0.0f;
#pragma unroll 8
    for (unsigned int round = 0; round < rounds; ++round) {
        // Each round reads another order, so that no load is the one before.
        float4 v = quad[(threadIdx.x + 32 * round) & 1023];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    sums[blockIdx.x * 1024 + threadIdx.x] = sum;
}
