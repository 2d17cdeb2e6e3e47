// Exercise: whose register is it?
//
// Let lane 0 of every warp end with the sum of all 32 lanes.
// `cargo book exercise ch04 shuffle` checks it. Stuck? Add `--hint`.
constexpr unsigned int WARPS = 8;

extern "C" __global__ void ch04_shuffle(const float* __restrict__ a, float* __restrict__ partials,
                                        size_t n) {
    __shared__ float s[WARPS];
    unsigned int t = threadIdx.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + t;
    float x = i < n ? a[i] : 0.0f;

    // Your turn: begin.
    for (int offset = 16; offset > 1; offset /= 2) {
        x += __shfl_down_sync(0xffffffff, x, offset);
    }
    // Your turn: end.

    if (t % 32 == 0) {
        s[t / 32] = x;
    }
    __syncthreads();
    if (t == 0) {
        float sum = 0.0f;
        for (unsigned int warp = 0; warp < WARPS; ++warp) {
            sum += s[warp];
        }
        partials[blockIdx.x] = sum;
    }
}
