// Softmax of every row, step 1: three passes.
//
// y = exp(x - max) / sum of exp(x - max): the largest element of the row is taken off first, so
// that no exponential overflows. Each pass reads the row: for the maximum, for the sum, for the
// result. Bound by memory, or by L2 where a row is still there the second time.
// Launch: one block of THREADS threads a row.
constexpr unsigned int THREADS = 256;
constexpr unsigned int WARPS = THREADS / 32;

__device__ float infinity() {
    return __int_as_float(0x7f800000);
}

// The largest number of a block, in every thread. `s` holds a number for every warp.
__device__ float block_max(float x, float* s) {
    for (int offset = 16; offset > 0; offset /= 2) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset));
    }
    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = x;
    }
    __syncthreads();
    for (unsigned int warp = 0; warp < WARPS; ++warp) {
        x = fmaxf(x, s[warp]);
    }
    return x;
}

// The sum over a block, in every thread.
__device__ float block_sum(float x, float* s) {
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(0xffffffff, x, offset);
    }
    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = 0.0f;
    for (unsigned int warp = 0; warp < WARPS; ++warp) {
        x += s[warp];
    }
    return x;
}

extern "C" __global__ void softmax_01_three_passes(const float* __restrict__ x,
                                                   float* __restrict__ y, unsigned int rows,
                                                   unsigned int columns) {
    __shared__ float largest[WARPS], sums[WARPS];
    size_t row = (size_t)blockIdx.x * columns;
    unsigned int t = threadIdx.x;

    // ANCHOR: passes
    float m = -infinity();
    for (unsigned int i = t; i < columns; i += THREADS) {
        m = fmaxf(m, x[row + i]);
    }
    m = block_max(m, largest);

    float s = 0.0f;
    for (unsigned int i = t; i < columns; i += THREADS) {
        s += __expf(x[row + i] - m);
    }
    s = block_sum(s, sums);

    for (unsigned int i = t; i < columns; i += THREADS) {
        y[row + i] = __expf(x[row + i] - m) / s;
    }
    // ANCHOR_END: passes
}
