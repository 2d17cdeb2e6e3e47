// Chapter 2 in CUDA C++: a two-dimensional launch. The chapter compiles this by nvcc and calls it in its own process; it
// returns the runtime's error code, 0 for success.
#include <cuda_runtime.h>

// ANCHOR: plane
__global__ void plane(unsigned* block, unsigned* thread, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        size_t i = (size_t)y * width + x;
        block[i] = blockIdx.y * gridDim.x + blockIdx.x;
        thread[i] = threadIdx.y * blockDim.x + threadIdx.x;
    }
}

// Enqueues one launch; block and thread are on the device and hold width * height numbers.
extern "C" int peer_plane(unsigned* block, unsigned* thread, unsigned width, unsigned height, cudaStream_t stream) {
    dim3 threads(32, 8), blocks((width + 31) / 32, (height + 7) / 8);
    plane<<<blocks, threads, 0, stream>>>(block, thread, width, height);
    return cudaGetLastError();
}
// ANCHOR_END: plane
