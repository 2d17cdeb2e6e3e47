// Sum, step 6: the threads of a warp exchange registers.
//
// New: a shuffle reads another lane's register, without shared memory and without a barrier. Five
// rounds add up a warp; shared memory carries one number a warp, across one barrier.
// Launch: as step 5.
constexpr unsigned int THREADS = 256;
constexpr unsigned int WARPS = THREADS / 32;

// ANCHOR: warp_sum
// The sum over the lanes of a warp, in lane 0.
__device__ float warp_sum(float x) {
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_down_sync(0xffffffff, x, offset);
    }
    return x;
}
// ANCHOR_END: warp_sum

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

extern "C" __global__ void sum_06_shuffle(const float* __restrict__ a, float* __restrict__ partials,
                                          size_t n) {
    __shared__ float s[WARPS];
    unsigned int t = threadIdx.x;

    // Load two. Where there is no element, 0 is added: it changes no sum.
    size_t i = (size_t)blockIdx.x * (2 * THREADS) + t;
    float x = (i < n ? a[i] : 0.0f) + (i + THREADS < n ? a[i + THREADS] : 0.0f);

    x = block_sum(x, s);
    if (t == 0) {
        partials[blockIdx.x] = x;
    }
}
