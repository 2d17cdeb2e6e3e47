// Softmax of every row, step 4: a row a warp, for short rows.
//
// New: 32 threads a row instead of a block. There is no shared memory and no barrier left, no
// thread without an element in rows of 128 columns and more, and no work on groups beyond the row.
// Bound by memory.
// Launch: one-dimensional, blocks of WARPS warps, a warp for every row of at most 4 * GROUPS *
// THREADS columns. `x` and `y` must lie on 16-byte boundaries.
constexpr unsigned int THREADS = 32;
constexpr unsigned int WARPS = 8;
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

extern "C" __global__ void __launch_bounds__(WARPS* THREADS)
    softmax_04_warp(const float* __restrict__ x, float* __restrict__ y, unsigned int rows,
                    unsigned int columns) {
    size_t row = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    unsigned int t = threadIdx.x % 32;

    // A warp without a row: there is no barrier that would miss it.
    if (row >= rows) {
        return;
    }

    float4 v[GROUPS];
    load_row(v, x + row * columns, columns, t, -infinity());

    float m = -infinity();
#pragma unroll
    for (unsigned int j = 0; j < GROUPS && 4 * j * THREADS < columns; ++j) {
        m = fmaxf(m, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
    }
    m = warp_max(m);

    float s = 0.0f;
#pragma unroll
    for (unsigned int j = 0; j < GROUPS && 4 * j * THREADS < columns; ++j) {
        v[j].x = __expf(v[j].x - m);
        v[j].y = __expf(v[j].y - m);
        v[j].z = __expf(v[j].z - m);
        v[j].w = __expf(v[j].w - m);
        s += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    }
    s = warp_sum(s);

    float scale = 1.0f / s;
#pragma unroll
    for (unsigned int j = 0; j < GROUPS && 4 * j * THREADS < columns; ++j) {
        v[j].x *= scale;
        v[j].y *= scale;
        v[j].z *= scale;
        v[j].w *= scale;
    }
    store_row(y + row * columns, v, columns, t);
}
