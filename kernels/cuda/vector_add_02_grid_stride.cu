// Vector add, step 2: the threads stride through the elements by the size of the grid.
//
// New: the launch no longer has to fit `n`. A grid as large as the device can hold at once does it
// all, and neighbouring threads still touch neighbouring elements. Bound by memory, as before.
// Launch: one-dimensional, any number of blocks of any size.
extern "C" __global__ void vector_add_02_grid_stride(const float* __restrict__ a,
                                                     const float* __restrict__ b,
                                                     float* __restrict__ c, size_t n) {
    // Where am I, and how many of us are there?
    size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t threads = (size_t)gridDim.x * blockDim.x;

    for (size_t i = first; i < n; i += threads) {
        c[i] = a[i] + b[i];
    }
}
