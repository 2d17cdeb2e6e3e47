// Chapter 5 in CUDA C++, compiled by nvcc before the program runs, as a small library, so that Rust and C++ are timed in turn
// in one process.
// The chapter's cell `peers` builds it: nvcc -O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC ch05_cuda.cu -o libch05_cuda.so
// Every function returns the CUDA runtime's error code, 0 for success.
#include <cstddef>
#include <cuda_runtime.h>

// ANCHOR: add
extern "C" __global__ void scalar_add(const float* a, const float* b, float* c, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}

// Enqueues one addition of n floats, all pointers on the device.
extern "C" int peer_add_scalar(const float* a, const float* b, float* c, size_t n, cudaStream_t stream) {
    scalar_add<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(a, b, c, n);
    return cudaGetLastError();
}
// ANCHOR_END: add

extern "C" __global__ void float4_add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                      size_t n) {
    size_t first = 4 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);
    if (first + 4 <= n) {
        float4 x = *reinterpret_cast<const float4*>(a + first);
        float4 y = *reinterpret_cast<const float4*>(b + first);
        *reinterpret_cast<float4*>(c + first) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
        return;
    }
    for (size_t i = first; i < n; ++i) {
        c[i] = a[i] + b[i];
    }
}

extern "C" int peer_add_float4(const float* a, const float* b, float* c, size_t n, cudaStream_t stream) {
    float4_add<<<(unsigned)((n + 1023) / 1024), 256, 0, stream>>>(a, b, c, n);
    return cudaGetLastError();
}

// Enqueues `count` additions.
extern "C" int peer_launch(int count, const float* a, const float* b, float* c, size_t n, cudaStream_t stream) {
    for (int i = 0; i < count; ++i) {
        scalar_add<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(a, b, c, n);
    }
    return cudaGetLastError();
}
