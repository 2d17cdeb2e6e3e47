// Scan, step 2, the first of three kernels: the sum of every tile.
//
// New: the elements are cut into tiles of TILE, one for each block. When the sums of the tiles are
// scanned (by step 1, as they are few), every tile knows what comes before it. Bound by memory, but
// the elements will be read a second time.
// Launch: one-dimensional, one block of THREADS threads for every TILE elements. `a` must lie on a
// 16-byte boundary.
constexpr unsigned int THREADS = 256;
constexpr unsigned int WARPS = THREADS / 32;
constexpr unsigned int ROWS = 4;
constexpr unsigned int TILE = 4 * ROWS * THREADS;

// The sum over the lanes of a warp, in lane 0.
__device__ float warp_sum(float x) {
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_down_sync(0xffffffff, x, offset);
    }
    return x;
}

extern "C" __global__ void scan_02_tile_sums(const float* __restrict__ a, float* __restrict__ sums,
                                             size_t n) {
    __shared__ float s[WARPS];
    unsigned int t = threadIdx.x;

    float x = 0.0f;
#pragma unroll
    for (unsigned int row = 0; row < ROWS; ++row) {
        size_t i = (size_t)blockIdx.x * TILE + 4 * (row * THREADS + t);
        if (i + 4 <= n) {
            float4 v = *reinterpret_cast<const float4*>(a + i);
            x += (v.x + v.y) + (v.z + v.w);
        } else {
            x += (i < n ? a[i] : 0.0f) + (i + 1 < n ? a[i + 1] : 0.0f) +
                 (i + 2 < n ? a[i + 2] : 0.0f);
        }
    }

    x = warp_sum(x);
    if (t % 32 == 0) {
        s[t / 32] = x;
    }
    __syncthreads();
    if (t < 32) {
        x = warp_sum(t < WARPS ? s[t] : 0.0f);
    }
    if (t == 0) {
        sums[blockIdx.x] = x;
    }
}
