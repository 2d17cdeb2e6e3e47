// Threads with unequal amounts of work.
//
// A warp goes on until its last thread is done. Whether that is waste depends on who its neighbours
// are, and so on the order of the input.
// Launch: one-dimensional, a thread for each of `n` elements, in blocks of any size.
extern "C" __global__ void divergence_03_uneven(const unsigned int* __restrict__ rounds,
                                                float* __restrict__ output, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }

    unsigned int mine = rounds[i];
    float x = 0.0f;
    for (unsigned int round = 0; round < mine; ++round) {
        x = fmaf(x, 0.5f, 1.0f);
    }
    output[i] = x;
}
