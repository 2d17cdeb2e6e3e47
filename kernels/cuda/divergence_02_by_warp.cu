// The same work in several ways: all threads of a warp go the same way.
//
// New: it is the number of the warp that decides. As many threads of a block go each way as before,
// but no warp has to walk more than one.
// Launch: one-dimensional, a thread for each of `n` elements, in blocks of 1024 threads.
extern "C" __global__ void divergence_02_by_warp(const float* __restrict__ input,
                                                 float* __restrict__ output, size_t n,
                                                 unsigned int ways, unsigned int rounds) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }

    // Which way do I go?
    unsigned int mine = threadIdx.x / warpSize % ways;

    float x = input[i];
    for (unsigned int way = 0; way < ways; ++way) {
        if (way == mine) {
            for (unsigned int round = 0; round < rounds; ++round) {
                x = fmaf(x, 0.5f, 1.0f + way);
            }
        }
    }
    output[i] = x;
}
