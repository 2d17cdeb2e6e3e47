// Index arithmetic in one dimension: every thread writes down who it is, at its own element.
//
// Launch: one-dimensional, a thread for each of `n` elements, in blocks of any size.
extern "C" __global__ void index_01_line(unsigned int* __restrict__ block,
                                         unsigned int* __restrict__ thread, size_t n) {
    // Where am I? Whole blocks stand before mine, and threads of my own block.
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    // Is there anything to do?
    if (i >= n) {
        return;
    }

    block[i] = blockIdx.x;
    thread[i] = threadIdx.x;
}
