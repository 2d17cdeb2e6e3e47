// Softmax of every row, step 3: the row stays in registers.
//
// New: a thread loads its part of the row once, 16 bytes at a time, and keeps it. Then maximum and
// sum cost no memory, and two plain reductions do. Bound by memory: every element is read once and
// written once.
// Launch: one block of THREADS threads a row of at most 4 * GROUPS * THREADS columns. `x` and `y`
// must lie on 16-byte boundaries. Where `columns` is no multiple of 4, neither do the rows: then
// elements travel one by one.
constexpr unsigned int THREADS = 128;
constexpr unsigned int WARPS = THREADS / 32;
constexpr unsigned int GROUPS = 8;

__device__ float infinity() {
    return __int_as_float(0x7f800000);
}

// The largest number of a warp, in every lane.
__device__ float warp_max(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset));
    }
    return x;
}

// The sum of a warp, in every lane.
__device__ float warp_sum(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x = x + __shfl_xor_sync(0xffffffff, x, offset);
    }
    return x;
}

// The largest number of a block, in every thread. `s` holds a number for every warp.
__device__ float block_max(float x, float* s) {
    x = warp_max(x);
    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = s[0];
#pragma unroll
    for (unsigned int warp = 1; warp < WARPS; ++warp) {
        x = fmaxf(x, s[warp]);
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

// ANCHOR: load
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
// ANCHOR_END: load

// Stores a thread's elements of a row, as load_row loaded them.
__device__ void store_row(float* row, const float4 (&v)[GROUPS], unsigned int columns,
                          unsigned int t) {
#pragma unroll
    for (unsigned int j = 0; j < GROUPS; ++j) {
        if (columns % 4 == 0) {
            unsigned int i = 4 * (j * THREADS + t);
            if (i < columns) {
                __stcs(reinterpret_cast<float4*>(row + i), v[j]);
            }
        } else {
            const float elements[4] = {v[j].x, v[j].y, v[j].z, v[j].w};
#pragma unroll
            for (unsigned int k = 0; k < 4; ++k) {
                unsigned int i = (4 * j + k) * THREADS + t;
                if (i < columns) {
                    row[i] = elements[k];
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_03_registers(const float* __restrict__ x, float* __restrict__ y, unsigned int rows,
                         unsigned int columns) {
    __shared__ float largest[WARPS], sums[WARPS];
    size_t row = blockIdx.x;
    unsigned int t = threadIdx.x;

    float4 v[GROUPS];
    load_row(v, x + row * columns, columns, t, -infinity());

    // ANCHOR: passes
    float m = -infinity();
#pragma unroll
    for (unsigned int j = 0; j < GROUPS; ++j) {
        m = fmaxf(m, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
    }
    m = block_max(m, largest);

    float s = 0.0f;
#pragma unroll
    for (unsigned int j = 0; j < GROUPS; ++j) {
        v[j].x = __expf(v[j].x - m);
        v[j].y = __expf(v[j].y - m);
        v[j].z = __expf(v[j].z - m);
        v[j].w = __expf(v[j].w - m);
        s += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    }
    s = block_sum(s, sums);

    float scale = 1.0f / s;
#pragma unroll
    for (unsigned int j = 0; j < GROUPS; ++j) {
        v[j].x *= scale;
        v[j].y *= scale;
        v[j].z *= scale;
        v[j].w *= scale;
    }
    // ANCHOR_END: passes
    store_row(y + row * columns, v, columns, t);
}
