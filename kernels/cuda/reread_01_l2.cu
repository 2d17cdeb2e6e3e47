// Reads the same `n` floats over and over, past the L1 cache: the rate of L2, or of memory.
//
// The threads take turns, 16 bytes each, until every float was read `rounds` times. `__ldcg` loads
// past L1. The sum keeps the compiler from leaving the loads out. Bound by what `n` floats fit into.
// Launch: one-dimensional, at least `threads` threads. `n` is a power of two and at least 4.
extern "C" __global__ void reread_01_l2(const float* __restrict__ a, float* __restrict__ sums,
                                        size_t n, unsigned int rounds, unsigned int threads) {
    // Where am I?
    unsigned int first = blockIdx.x * blockDim.x + threadIdx.x;
    if (first >= threads) {
        return;
    }
    size_t quads = n / 4;
    const float4* quad = reinterpret_cast<const float4*>(a);

    float sum = 0.0f;
#pragma unroll 4
    for (size_t i = first; i < quads * rounds; i += threads) {
        float4 v = __ldcg(quad + (i & (quads - 1)));
        sum += (v.x + v.y) + (v.z + v.w);
    }
    sums[first] = sum;
}
