// How far a column's values lie below their maximum: sum of (maximum - value)^2, 64 values a thread.
//
// A thread reads its column once and goes over it twice, so it has to keep 64 values. It asks for
// them by numbers that the compiler knows, and so each gets a register. Bound by memory.
// Launch: one-dimensional, blocks of 256 threads, at least `n` threads. `a` has 64 rows of `n`.
constexpr unsigned int DEPTH = 64;

extern "C" __global__ void __launch_bounds__(256)
    spread_01_registers(const float* __restrict__ a, float* __restrict__ c, size_t n) {
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
