// Scan, step 3, the last of three kernels: every block scans its tile and adds what comes before.
//
// A warp takes ROWS rows of 32 float4s. Each row is scanned by shuffles, and the rows one after the
// other carry their sum along. Bound by memory: with step 2, every element is read twice and
// written once, 12 bytes where 8 would do.
// Launch: one-dimensional, one block of THREADS threads for every TILE elements. `sums` holds the
// inclusive scan of the tiles' sums. `a` and `c` must lie on 16-byte boundaries.
constexpr unsigned int THREADS = 256;
constexpr unsigned int WARPS = THREADS / 32;
constexpr unsigned int ROWS = 4;
constexpr unsigned int TILE = 4 * ROWS * THREADS;

// The inclusive scan over the lanes of a warp.
__device__ float warp_scan(float x, unsigned int lane) {
#pragma unroll
    for (unsigned int offset = 1; offset < 32; offset *= 2) {
        float before = __shfl_up_sync(0xffffffff, x, offset);
        if (lane >= offset) {
            x += before;
        }
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scan_03_downsweep(const float* __restrict__ a, const float* __restrict__ sums,
                      float* __restrict__ c, size_t n) {
    __shared__ float warp_sums[WARPS];
    unsigned int t = threadIdx.x;
    unsigned int lane = t % 32, warp = t / 32;
    unsigned int tile = blockIdx.x;

    // Load the warp's rows.
    size_t first = (size_t)tile * TILE + warp * (128 * ROWS) + 4 * lane;
    float4 v[ROWS];
#pragma unroll
    for (unsigned int row = 0; row < ROWS; ++row) {
        size_t i = first + 128 * row;
        if (i + 4 <= n) {
            v[row] = __ldcs(reinterpret_cast<const float4*>(a + i));
        } else {
            v[row] = make_float4(i < n ? a[i] : 0.0f, i + 1 < n ? a[i + 1] : 0.0f,
                                 i + 2 < n ? a[i + 2] : 0.0f, 0.0f);
        }
    }

    // ANCHOR: rows
    // Scan them: the four elements of a thread, the lanes of a row, the rows of the warp.
    float carry = 0.0f;
#pragma unroll
    for (unsigned int row = 0; row < ROWS; ++row) {
        v[row].y += v[row].x;
        v[row].z += v[row].y;
        v[row].w += v[row].z;
        float scanned = warp_scan(v[row].w, lane);
        float before = __shfl_up_sync(0xffffffff, scanned, 1);
        before = lane > 0 ? carry + before : carry;
        carry += __shfl_sync(0xffffffff, scanned, 31);
        v[row].x += before;
        v[row].y += before;
        v[row].z += before;
        v[row].w += before;
    }
    if (lane == 0) {
        warp_sums[warp] = carry;
    }
    __syncthreads();
    // ANCHOR_END: rows

    // What comes before this warp: the tiles before, then the warps before.
    float before = tile > 0 ? sums[tile - 1] : 0.0f;
#pragma unroll
    for (unsigned int other = 0; other < WARPS; ++other) {
        before += other < warp ? warp_sums[other] : 0.0f;
    }

    // Store.
#pragma unroll
    for (unsigned int row = 0; row < ROWS; ++row) {
        size_t i = first + 128 * row;
        float4 sum =
            make_float4(v[row].x + before, v[row].y + before, v[row].z + before, v[row].w + before);
        if (i + 4 <= n) {
            __stcs(reinterpret_cast<float4*>(c + i), sum);
        } else {
            if (i < n) {
                c[i] = sum.x;
            }
            if (i + 1 < n) {
                c[i + 1] = sum.y;
            }
            if (i + 2 < n) {
                c[i + 2] = sum.z;
            }
        }
    }
}
