// Layer norm of every row, step 3: the row stays in registers.
//
// New: a thread loads its part of the row once, 16 bytes at a time, and keeps it. Then the mean and
// the variance around it, each by a plain sum, cost no memory. Bound by memory: every element is
// read once and written once; `weight` and `bias` come from the caches.
// Launch: one block of THREADS threads a row of at most 4 * GROUPS * THREADS columns. All pointers
// must lie on 16-byte boundaries. Where `columns` is no multiple of 4, the rows do not: then
// elements travel one by one.
constexpr unsigned int THREADS = 512;
constexpr unsigned int WARPS = THREADS / 32;
constexpr unsigned int GROUPS = 2;

// The sum of a warp, in every lane.
__device__ float warp_sum(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x = x + __shfl_xor_sync(0xffffffff, x, offset);
    }
    return x;
}

// The sum over a block, in every thread. `s` holds a number for every warp.
__device__ float block_sum(float x, float* s) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = s[0];
#pragma unroll
    for (unsigned int warp = 1; warp < WARPS; ++warp) {
        x = x + s[warp];
    }
    return x;
}

// Loads a thread's elements of a row: float4s where rows lie on 16-byte boundaries, else one by
// one. Beyond the row, `filler`.
__device__ void load_row(float4 (&v)[GROUPS], const float* row, unsigned int columns,
                         unsigned int t, float filler) {
#pragma unroll
    for (unsigned int j = 0; j < GROUPS; ++j) {
        if (columns % 4 == 0) {
            unsigned int i = 4 * (j * THREADS + t);
            v[j] = i < columns ? __ldcs(reinterpret_cast<const float4*>(row + i))
                               : make_float4(filler, filler, filler, filler);
        } else {
            unsigned int i = 4 * j * THREADS + t;
            v[j].x = i < columns ? row[i] : filler;
            v[j].y = i + THREADS < columns ? row[i + THREADS] : filler;
            v[j].z = i + 2 * THREADS < columns ? row[i + 2 * THREADS] : filler;
            v[j].w = i + 3 * THREADS < columns ? row[i + 3 * THREADS] : filler;
        }
    }
}

// Whether element `k` of a thread's group `j` lies in the row, as load_row loads it.
__device__ bool is_in_row(unsigned int j, unsigned int k, unsigned int columns, unsigned int t) {
    return (columns % 4 == 0 ? 4 * (j * THREADS + t) + k : (4 * j + k) * THREADS + t) < columns;
}

// Scales, shifts and stores a thread's elements of a row, as load_row loaded them.
__device__ void store_row(float* row, const float4 (&v)[GROUPS], const float* weight,
                          const float* bias, float scale, unsigned int columns, unsigned int t) {
#pragma unroll
    for (unsigned int j = 0; j < GROUPS; ++j) {
        if (columns % 4 == 0) {
            unsigned int i = 4 * (j * THREADS + t);
            if (i < columns) {
                float4 w = __ldg(reinterpret_cast<const float4*>(weight + i));
                float4 b = __ldg(reinterpret_cast<const float4*>(bias + i));
                __stcs(reinterpret_cast<float4*>(row + i),
                       make_float4(fmaf(v[j].x * scale, w.x, b.x), fmaf(v[j].y * scale, w.y, b.y),
                                   fmaf(v[j].z * scale, w.z, b.z), fmaf(v[j].w * scale, w.w, b.w)));
            }
        } else {
            const float elements[4] = {v[j].x, v[j].y, v[j].z, v[j].w};
#pragma unroll
            for (unsigned int k = 0; k < 4; ++k) {
                unsigned int i = (4 * j + k) * THREADS + t;
                if (i < columns) {
                    row[i] = fmaf(elements[k] * scale, weight[i], bias[i]);
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    layer_norm_03_registers(const float* __restrict__ x, const float* __restrict__ weight,
                            const float* __restrict__ bias, float* __restrict__ y,
                            unsigned int rows, unsigned int columns, float epsilon) {
    __shared__ float sums[WARPS], squares[WARPS];
    size_t row = blockIdx.x;
    unsigned int t = threadIdx.x;

    float4 v[GROUPS];
    load_row(v, x + row * columns, columns, t, 0.0f);

    float s = 0.0f;
#pragma unroll
    for (unsigned int j = 0; j < GROUPS; ++j) {
        s += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    }
    float mean = block_sum(s, sums) / columns;

    // What lies beyond the row must not count: it lies at no distance from the mean.
    float q = 0.0f;
#pragma unroll
    for (unsigned int j = 0; j < GROUPS; ++j) {
        v[j].x = is_in_row(j, 0, columns, t) ? v[j].x - mean : 0.0f;
        v[j].y = is_in_row(j, 1, columns, t) ? v[j].y - mean : 0.0f;
        v[j].z = is_in_row(j, 2, columns, t) ? v[j].z - mean : 0.0f;
        v[j].w = is_in_row(j, 3, columns, t) ? v[j].w - mean : 0.0f;
        q = fmaf(v[j].x, v[j].x, q);
        q = fmaf(v[j].y, v[j].y, q);
        q = fmaf(v[j].z, v[j].z, q);
        q = fmaf(v[j].w, v[j].w, q);
    }
    float scale = rsqrtf(block_sum(q, squares) / columns + epsilon);

    store_row(y + row * columns, v, weight, bias, scale, columns, t);
}
