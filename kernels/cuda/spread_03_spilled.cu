// The same source as step 1, with too few registers for it.
//
// New: it promises that two blocks of 1024 threads will fit on a multiprocessor, which leaves a
// thread 32 registers. The assembler keeps in local memory what does not fit: it spills. PTX does
// not know of it, since it has as many registers as it likes.
// Launch: one-dimensional, blocks of at most 1024 threads, at least `n` threads. `a` has 64 rows.
constexpr unsigned int DEPTH = 64;

extern "C" __global__ void __launch_bounds__(1024, 2)
    spread_03_spilled(const float* __restrict__ a, float* __restrict__ c, size_t n) {
    // Where am I?
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        float values[DEPTH];
#pragma unroll
        for (unsigned int k = 0; k < DEPTH; ++k) {
            values[k] = a[k * n + i];
        }
        float maximum = values[0];
#pragma unroll
        for (unsigned int k = 1; k < DEPTH; ++k) {
            maximum = fmaxf(maximum, values[k]);
        }
        float sum = 0.0f;
#pragma unroll
        for (unsigned int k = 0; k < DEPTH; ++k) {
            sum = fmaf(maximum - values[k], maximum - values[k], sum);
        }
        c[i] = sum;
    }
}
