// Moves particles along x, from a struct of arrays.
//
// New: all x lie together, and all vx. A warp's 32 values fill their sectors, and nothing is
// fetched that nobody wants. Bound by memory. Launch: one-dimensional, at least `n` threads.
extern "C" __global__ void advance_02_arrays(const float* __restrict__ x,
                                             const float* __restrict__ vx,
                                             float* __restrict__ moved, float dt, size_t n) {
    // Where am I?
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        moved[i] = fmaf(vx[i], dt, x[i]);
    }
}
