// Index arithmetic in three dimensions: `depth` layers of `height` rows of `width` elements.
//
// New: the third dimension, the same once more.
// Launch: three-dimensional, a thread for each element, in blocks of any shape.
extern "C" __global__ void index_03_volume(unsigned int* __restrict__ block,
                                           unsigned int* __restrict__ thread, unsigned int width,
                                           unsigned int height, unsigned int depth) {
    // Where am I?
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int z = blockIdx.z * blockDim.z + threadIdx.z;

    // Is there anything to do?
    if (x >= width || y >= height || z >= depth) {
        return;
    }

    // Layers lie behind each other in memory, as rows do.
    size_t i = ((size_t)z * height + y) * width + x;
    block[i] = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    thread[i] = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
