// Layer norm of every row, step 1: three passes.
//
// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and variance over the row. One
// pass for the mean, one for the variance around it, one for the result. Bound by memory, or by L2
// where a row is still there the second time.
// Launch: one block of THREADS threads a row.
constexpr unsigned int THREADS = 256;
constexpr unsigned int WARPS = THREADS / 32;

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

extern "C" __global__ void layer_norm_01_three_passes(const float* __restrict__ x,
                                                      const float* __restrict__ weight,
                                                      const float* __restrict__ bias,
                                                      float* __restrict__ y, unsigned int rows,
                                                      unsigned int columns, float epsilon) {
    __shared__ float sums[WARPS], squares[WARPS];
    size_t row = (size_t)blockIdx.x * columns;
    unsigned int t = threadIdx.x;

    float s = 0.0f;
    for (unsigned int i = t; i < columns; i += THREADS) {
        s += x[row + i];
    }
    float mean = block_sum(s, sums) / columns;

    float q = 0.0f;
    for (unsigned int i = t; i < columns; i += THREADS) {
        float d = x[row + i] - mean;
        q = fmaf(d, d, q);
    }
    float scale = rsqrtf(block_sum(q, squares) / columns + epsilon);

    for (unsigned int i = t; i < columns; i += THREADS) {
        y[row + i] = fmaf((x[row + i] - mean) * scale, weight[i], bias[i]);
    }
}
