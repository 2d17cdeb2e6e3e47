// Index arithmetic in two dimensions: a picture of `height` rows of `width` elements.
//
// New: grid and block have a second dimension, and so has the guard. Along x threads are
// neighbours: 32 of them in the order of x, then y, are a warp.
// Launch: two-dimensional, a thread for each element, in blocks of any shape.
extern "C" __global__ void index_02_plane(unsigned int* __restrict__ block,
                                          unsigned int* __restrict__ thread, unsigned int width,
                                          unsigned int height) {
    // Where am I?
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int y = blockIdx.y * blockDim.y + threadIdx.y;

    // Is there anything to do? A block may stick out on the right, below, or both.
    if (x >= width || y >= height) {
        return;
    }

    // Rows lie behind each other in memory.
    size_t i = (size_t)y * width + x;
    block[i] = blockIdx.y * gridDim.x + blockIdx.x;
    thread[i] = threadIdx.y * blockDim.x + threadIdx.x;
}
