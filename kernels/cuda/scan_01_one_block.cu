// Scan, step 1: one block walks through all elements and carries the sum along.
//
// An inclusive scan: c[i] = a[0] + … + a[i]. A warp scans 32 elements by shuffles in five rounds, a
// block its 1024 by the sums of its warps. Bound by waiting: one multiprocessor works, and every
// round waits for memory.
// Launch: one block of THREADS threads.
constexpr unsigned int THREADS = 1024;
constexpr unsigned int WARPS = THREADS / 32;

// ANCHOR: warp_scan
// The inclusive scan over the lanes of a warp.
__device__ float warp_scan(float x, unsigned int lane) {
    for (unsigned int offset = 1; offset < 32; offset *= 2) {
        float before = __shfl_up_sync(0xffffffff, x, offset);
        if (lane >= offset) {
            x += before;
        }
    }
    return x;
}
// ANCHOR_END: warp_scan

extern "C" __global__ void scan_01_one_block(const float* __restrict__ a, float* __restrict__ c,
                                             size_t n) {
    __shared__ float sums[WARPS];
    unsigned int t = threadIdx.x;
    unsigned int lane = t % 32, warp = t / 32;
    float carry = 0.0f;

    for (size_t start = 0; start < n; start += THREADS) {
        size_t i = start + t;
        float x = warp_scan(i < n ? a[i] : 0.0f, lane);
        if (lane == 31) {
            sums[warp] = x;
        }
        __syncthreads();
        if (warp == 0) {
            sums[lane] = warp_scan(sums[lane], lane);
        }
        __syncthreads();
        float before = carry + (warp > 0 ? sums[warp - 1] : 0.0f);
        if (i < n) {
            c[i] = before + x;
        }
        carry += sums[WARPS - 1];
        __syncthreads();
    }
}
