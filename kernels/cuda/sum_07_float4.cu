// Sum, step 7: 16-byte loads.
//
// New: a thread loads four neighbouring elements with one instruction, four times, all on their way
// before the first is needed. Bound by memory from here on.
// Launch: as step 2, with one block for every 16 * THREADS elements. `a` must lie on a 16-byte
// boundary: an allocation does, a slice of one may not.
constexpr unsigned int THREADS = 256;
constexpr unsigned int WARPS = THREADS / 32;
constexpr unsigned int LOADS = 4;

// The sum over the lanes of a warp, in lane 0.
__device__ float warp_sum(float x) {
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_down_sync(0xffffffff, x, offset);
    }
    return x;
}

// The sum over the threads of a block, in thread 0. `s` holds a number for every warp.
__device__ float block_sum(float x, float* s) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = x;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        x = warp_sum(threadIdx.x < WARPS ? s[threadIdx.x] : 0.0f);
    }
    return x;
}

extern "C" __global__ void sum_07_float4(const float* __restrict__ a, float* __restrict__ partials,
                                         size_t n) {
    __shared__ float s[WARPS];
    unsigned int t = threadIdx.x;

    // Load four times four. Where there is no element, 0 is added: it changes no sum.
    float4 v[LOADS];
#pragma unroll
    for (unsigned int j = 0; j < LOADS; ++j) {
        size_t i = 4 * ((size_t)blockIdx.x * (LOADS * THREADS) + j * THREADS + t);
        if (i + 4 <= n) {
            v[j] = *reinterpret_cast<const float4*>(a + i);
        } else {
            v[j] = make_float4(i < n ? a[i] : 0.0f, i + 1 < n ? a[i + 1] : 0.0f,
                               i + 2 < n ? a[i + 2] : 0.0f, 0.0f);
        }
    }
    float x = 0.0f;
#pragma unroll
    for (unsigned int j = 0; j < LOADS; ++j) {
        x += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    }

    x = block_sum(x, s);
    if (t == 0) {
        partials[blockIdx.x] = x;
    }
}
