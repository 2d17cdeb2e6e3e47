// Vector add, step 1: one thread adds one element.
//
// Bound by memory: 12 bytes travel for every addition.
// Launch: one-dimensional, at least `n` threads, blocks of any size.
extern "C" __global__ void vector_add_01_scalar(const float* __restrict__ a,
                                                const float* __restrict__ b, float* __restrict__ c,
                                                size_t n) {
    // Where am I? In 64 bits, because blockIdx.x * blockDim.x passes 2^32 in a grid of 2^32
    // threads.
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    // The grid is a whole number of blocks and `n` need not be: the last threads have no element.
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
