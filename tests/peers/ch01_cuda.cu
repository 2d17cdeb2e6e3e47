// Chapter 1 in CUDA C++, as a small library, so that Rust and C++ are timed in turn in one process.
// The chapter's cell `peers` builds it: nvcc -O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC ch01_cuda.cu -o libch01_cuda.so
// Every function returns the CUDA runtime's error code, 0 for success.
#include <cstddef>
#include <cuda_runtime.h>

// ANCHOR: add
__global__ void vector_add(const float4* __restrict__ a, const float4* __restrict__ b, float4* __restrict__ c, size_t n4) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n4) {
        float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}
// ANCHOR_END: add

__global__ void empty() {}

static unsigned blocks(size_t threads) {
    return (unsigned)((threads + 255) / 256);
}

// Enqueues one addition of n floats, n a multiple of 4, all pointers on the device.
extern "C" int peer_vector_add(const float* a, const float* b, float* c, size_t n, cudaStream_t stream) {
    vector_add<<<blocks(n / 4), 256, 0, stream>>>((const float4*)a, (const float4*)b, (float4*)c, n / 4);
    return cudaGetLastError();
}

// Enqueues `count` launches of a kernel that does nothing.
extern "C" int peer_launch(int count, cudaStream_t stream) {
    for (int i = 0; i < count; ++i)
        empty<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

// ANCHOR: end_to_end
// Copies a and b in, adds, copies c out and waits. a, b, c are pinned host memory; da, db, dc are on the device.
extern "C" int peer_end_to_end(const float* a, const float* b, float* c, float* da, float* db, float* dc, size_t n,
                               cudaStream_t stream) {
    cudaMemcpyAsync(da, a, n * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(db, b, n * sizeof(float), cudaMemcpyHostToDevice, stream);
    int error = peer_vector_add(da, db, dc, n, stream);
    cudaMemcpyAsync(c, dc, n * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return error ? error : cudaGetLastError();
}
// ANCHOR_END: end_to_end
