// Exercise: agree with your neighbours.
//
// Give each thread an element such that the 32 threads of a warp go the same way at the branch.
// `cargo book exercise ch02 agree` checks it. Stuck? Add `--hint`.

// A sum that takes its time: 31 times b is taken away, and 64 halves of b are added.
__device__ float slow_sum(float a, float b) {
    float sum = a - 31.0f * b;
    for (int round = 0; round < 64; ++round) {
        sum = fmaf(b, 0.5f, sum);
    }
    return sum;
}

extern "C" __global__ void ch02_agree(const float* __restrict__ a, const float* __restrict__ b,
                                      float* __restrict__ c, size_t n) {
    size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    // Your turn: begin.
    size_t pair = thread / 64, place = thread % 64;
    size_t i = 64 * pair + place / 2 + 32 * (place % 2);
    // Your turn: end.

    if (i >= n) {
        return;
    }
    // Of every 64 elements, the first 32 are added slowly.
    c[i] = i % 64 < 32 ? slow_sum(a[i], b[i]) : a[i] + b[i];
}
