// Every block reads the same 4096 floats over and over: the rate of the L1 caches.
//
// New: 16 KB fit into the L1 cache of each multiprocessor, so after the first round nothing else
// is asked. Bound by L1.
// Launch: `blocks` blocks of 1024 threads; `sums` holds 1024 floats for every block.
extern "C" __global__ void reread_02_l1(const float* __restrict__ a, float* __restrict__ sums,
                                        unsigned int rounds, unsigned int blocks) {
    const float4* quad = reinterpret_cast<const float4*>(a);

    float sum = 0.0f;
#pragma unroll 8
    for (unsigned int round = 0; round < rounds; ++round) {
        // Each round reads another order, so that no load is the one before.
        float4 v = __ldca(quad + ((threadIdx.x + 32 * round) & 1023));
        sum += (v.x + v.y) + (v.z + v.w);
    }
    sums[blockIdx.x * 1024 + threadIdx.x] = sum;
}
