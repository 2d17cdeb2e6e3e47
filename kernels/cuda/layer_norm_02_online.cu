// Layer norm of every row, step 2: mean and variance in one pass.
//
// New: each thread keeps how many elements it has seen, their mean, and the sum of their squared
// distances from it, and corrects all three with every element. Two such triples become one. (The
// tempting short cut, the sum of squares less the square of the sum, cancels: a row far from 0
// loses its variance to rounding.) The row is read twice.
// The algorithm: B. P. Welford, Technometrics 4 (1962); to merge, T. F. Chan, G. H. Golub and R. J.
// LeVeque, Stanford STAN-CS-79-773 (1979).
// Launch: one block of THREADS threads a row.
constexpr unsigned int THREADS = 256;
constexpr unsigned int WARPS = THREADS / 32;

// ANCHOR: moments
// How many numbers, their mean, and the sum of their squared distances from it.
struct Moments {
    float count, mean, squares;
};

__device__ Moments merge(Moments a, Moments b) {
    float count = a.count + b.count;
    float share = count > 0.0f ? b.count / count : 0.0f;
    float d = b.mean - a.mean;
    return {count, fmaf(d, share, a.mean), a.squares + b.squares + d * d * a.count * share};
}
// ANCHOR_END: moments

// The moments of a block, in every thread. `s` holds those of every warp.
__device__ Moments block_merge(Moments m, Moments* s) {
    for (int offset = 16; offset > 0; offset /= 2) {
        m = merge(m, {__shfl_xor_sync(0xffffffff, m.count, offset),
                      __shfl_xor_sync(0xffffffff, m.mean, offset),
                      __shfl_xor_sync(0xffffffff, m.squares, offset)});
    }
    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = m;
    }
    __syncthreads();
    m = s[0];
    for (unsigned int warp = 1; warp < WARPS; ++warp) {
        m = merge(m, s[warp]);
    }
    return m;
}

extern "C" __global__ void layer_norm_02_online(const float* __restrict__ x,
                                                const float* __restrict__ weight,
                                                const float* __restrict__ bias,
                                                float* __restrict__ y, unsigned int rows,
                                                unsigned int columns, float epsilon) {
    __shared__ Moments moments[WARPS];
    size_t row = (size_t)blockIdx.x * columns;
    unsigned int t = threadIdx.x;

    Moments m = {0.0f, 0.0f, 0.0f};
    for (unsigned int i = t; i < columns; i += THREADS) {
        m = merge(m, {1.0f, x[row + i], 0.0f});
    }
    m = block_merge(m, moments);
    float scale = rsqrtf(m.squares / columns + epsilon);

    for (unsigned int i = t; i < columns; i += THREADS) {
        y[row + i] = fmaf((x[row + i] - m.mean) * scale, weight[i], bias[i]);
    }
}
