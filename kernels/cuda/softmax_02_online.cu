// Softmax of every row, step 2: maximum and sum in one pass.
//
// New: each thread keeps the largest number so far and the sum so far, and when a larger one comes,
// the sum is scaled down to it. Two such pairs become one in the same way. The row is read twice.
// The algorithm: M. Milakov and N. Gimelshein, Online normalizer calculation for softmax,
// arXiv:1805.02867.
// Launch: one block of THREADS threads a row.
constexpr unsigned int THREADS = 256;
constexpr unsigned int WARPS = THREADS / 32;

__device__ float infinity() {
    return __int_as_float(0x7f800000);
}

// ANCHOR: pair
// The largest of some numbers, and the sum of exp(number - largest).
struct Pair {
    float m, s;
};

__device__ Pair merge(Pair a, Pair b) {
    float m = fmaxf(a.m, b.m);
    // Of nothing but -inf, or of nothing at all, the sum is 0; -inf - -inf would be no number.
    float from = m == -infinity() ? 0.0f : m;
    return {m, a.s * __expf(a.m - from) + b.s * __expf(b.m - from)};
}
// ANCHOR_END: pair

// The pair of a block, in every thread. `pairs` holds one for every warp.
__device__ Pair block_merge(Pair p, Pair* pairs) {
    for (int offset = 16; offset > 0; offset /= 2) {
        p = merge(p, {__shfl_xor_sync(0xffffffff, p.m, offset),
                      __shfl_xor_sync(0xffffffff, p.s, offset)});
    }
    if (threadIdx.x % 32 == 0) {
        pairs[threadIdx.x / 32] = p;
    }
    __syncthreads();
    p = pairs[0];
    for (unsigned int warp = 1; warp < WARPS; ++warp) {
        p = merge(p, pairs[warp]);
    }
    return p;
}

extern "C" __global__ void softmax_02_online(const float* __restrict__ x, float* __restrict__ y,
                                             unsigned int rows, unsigned int columns) {
    __shared__ Pair pairs[WARPS];
    size_t row = (size_t)blockIdx.x * columns;
    unsigned int t = threadIdx.x;

    Pair p = {-infinity(), 0.0f};
    for (unsigned int i = t; i < columns; i += THREADS) {
        p = merge(p, {x[row + i], 1.0f});
    }
    p = block_merge(p, pairs);

    for (unsigned int i = t; i < columns; i += THREADS) {
        y[row + i] = __expf(x[row + i] - p.m) / p.s;
    }
}
