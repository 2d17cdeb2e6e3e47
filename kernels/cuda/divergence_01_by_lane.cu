// The same work in several ways: neighbouring threads go different ways.
//
// Thread t of a block goes the way t % ways. A warp executes one instruction at a time, so it walks
// each way that any of its threads takes, and the others wait.
// Launch: one-dimensional, a thread for each of `n` elements, in blocks of 1024 threads.
extern "C" __global__ void divergence_01_by_lane(const float* __restrict__ input,
                                                 float* __restrict__ output, size_t n,
                                                 unsigned int ways, unsigned int rounds) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }

    // Which way do I go?
    unsigned int mine = threadIdx.x % ways;

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
