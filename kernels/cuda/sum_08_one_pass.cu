// Sum, step 8: one launch; the block that finishes last adds up what the others left.
//
// New: as many blocks as the device holds at once stride through the elements, and count
// themselves out. Whoever finds that all others are done adds up their partial sums, in the order
// of the blocks, so that the result is the same in every run. Bound by memory.
// Launch: one-dimensional, `blocks` blocks of THREADS threads, at least one. `finished[0]` must be
// 0 before, and is 0 again afterwards. `a` must lie on a 16-byte boundary.
constexpr unsigned int THREADS = 512;
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

extern "C" __global__ void __launch_bounds__(THREADS)
    sum_08_one_pass(const float* __restrict__ a, float* __restrict__ sum, float* partials,
                    unsigned int* finished, size_t n, unsigned int blocks) {
    __shared__ float s[WARPS];
    __shared__ bool is_last;
    unsigned int t = threadIdx.x;

    // A block takes LOADS * THREADS float4s at a time. __ldcs says that nobody will read them
    // again.
    const float4* a4 = reinterpret_cast<const float4*>(a);
    size_t n4 = n / 4;
    float4 x4 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    size_t i = (size_t)blockIdx.x * (LOADS * THREADS) + t;
    for (; i + (LOADS - 1) * THREADS < n4; i += (size_t)blocks * (LOADS * THREADS)) {
        float4 v[LOADS];
#pragma unroll
        for (unsigned int j = 0; j < LOADS; ++j) {
            v[j] = __ldcs(a4 + i + j * THREADS);
        }
#pragma unroll
        for (unsigned int j = 0; j < LOADS; ++j) {
            x4.x += v[j].x;
            x4.y += v[j].y;
            x4.z += v[j].z;
            x4.w += v[j].w;
        }
    }

    // The tail: fewer float4s than a thread takes at a time, then at most three elements.
    for (unsigned int j = 0; j < LOADS && i < n4; ++j, i += THREADS) {
        float4 v = a4[i];
        x4.x += v.x;
        x4.y += v.y;
        x4.z += v.z;
        x4.w += v.w;
    }
    float x = (x4.x + x4.y) + (x4.z + x4.w);
    if (blockIdx.x == 0 && t < n % 4) {
        x += a[4 * n4 + t];
    }

    // ANCHOR: last
    x = block_sum(x, s);
    if (t == 0) {
        partials[blockIdx.x] = x;
        // The partial sum must be seen before the count is.
        __threadfence();
        is_last = atomicInc(finished, blocks - 1) == blocks - 1;
    }
    __syncthreads();
    if (!is_last) {
        return;
    }
    // ANCHOR_END: last

    // All partial sums are there. __ldcg reads them where the other blocks wrote them, in L2.
    x = 0.0f;
    for (unsigned int block = t; block < blocks; block += THREADS) {
        x += __ldcg(partials + block);
    }
    x = block_sum(x, s);
    if (t == 0) {
        sum[0] = x;
    }
}
