// Work of any length on every element: so many rounds of one fused multiply-add.
//
// New: the caller sets how long it takes, so that it can be made as long as a copy.
// Bound by arithmetic from a few hundred rounds on; below, by memory (8 bytes an element).
// Launch: any one-dimensional grid and block with at least n threads.
// Needs: input and output do not overlap. They may be parts of larger arrays.
extern "C" __global__ void work_01_rounds(const float* __restrict__ input,
                                          float* __restrict__ output, size_t n,
                                          unsigned int rounds) {
    // ANCHOR: body
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float x = input[i];
    for (unsigned int round = 0; round < rounds; ++round) {
        x = fmaf(x, 0.999f, 0.001f * (float)(round & 3));
    }
    output[i] = x;
    // ANCHOR_END: body
}
