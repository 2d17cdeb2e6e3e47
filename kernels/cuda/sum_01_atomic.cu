// Sum, step 1: every thread adds its element to one number in global memory.
//
// An atomic addition reads, adds and writes as one step that nobody can come between. Bound by just
// that: the additions to one address happen one after the other, in an order that nobody has fixed.
// Launch: one-dimensional, at least `n` threads, blocks of any size. `sum[0]` must be 0 before.
extern "C" __global__ void sum_01_atomic(const float* __restrict__ a, float* sum, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        atomicAdd(sum, a[i]);
    }
}
