// Vector add with a mistake, on purpose: step 1 without its guard.
//
// The threads past `n` in the last block read and write past the end of the arrays, unless `n` is a
// multiple of the block size. Chapter 1 launches it at an odd size to show what an error looks
// like. Nothing else should.
extern "C" __global__ void vector_add_04_no_guard(const float* __restrict__ a,
                                                  const float* __restrict__ b,
                                                  float* __restrict__ c, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    c[i] = a[i] + b[i];
}
