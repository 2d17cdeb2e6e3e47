// The same, with the values in local memory.
//
// New: the loops are not unrolled, so that the compiler does not know which value the program wants.
// Registers have no addresses; the array has to lie in memory. It is called local because each
// thread has its own, and it lies in the same chips as global memory. Bound by the L1 cache, if it
// is large enough.
// Launch: one-dimensional, blocks of 256 threads, at least `n` threads. `a` has 64 rows of `n`.
constexpr unsigned int DEPTH = 64;

extern "C" __global__ void __launch_bounds__(256)
    spread_02_local(const float* __restrict__ a, float* __restrict__ c, size_t n) {
    // Where am I?
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        float values[DEPTH];
#pragma unroll 1
        for (unsigned int k = 0; k < DEPTH; ++k) {
            values[k] = a[k * n + i];
        }
        float maximum = values[0];
#pragma unroll 1
        for (unsigned int k = 1; k < DEPTH; ++k) {
            maximum = fmaxf(maximum, values[k]);
        }
        float sum = 0.0f;
#pragma unroll 1
        for (unsigned int k = 0; k < DEPTH; ++k) {
            sum = fmaf(maximum - values[k], maximum - values[k], sum);
        }
        c[i] = sum;
    }
}
