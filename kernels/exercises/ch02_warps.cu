// Exercise: a warp's share.
//
// Let each warp take 128 neighbouring elements, so that its lane l adds those at l, l + 32, l + 64
// and l + 96. `cargo book exercise ch02 warps` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch02_warps(const float* __restrict__ a, const float* __restrict__ b,
                                      float* __restrict__ c, size_t n) {
    for (size_t k = 0; k < 4; ++k) {
        // Your turn: begin.
        size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
        size_t i = 4 * thread + k;
        // Your turn: end.
        if (i < n) {
            c[i] = a[i] + b[i];
        }
    }
}
