// Chapter 6 in CUDA C++, as a small library, so that Rust and C++ are timed in turn on the same managed memory.
// The chapter's cell `peers` builds it: nvcc -O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC ch06_cuda.cu -o libch06_cuda.so
// Every function returns the CUDA runtime's error code, 0 for success.
#include <cstddef>
#include <cuda_runtime.h>

// ANCHOR: kernel
__global__ void vector_add(const float4* __restrict__ a, const float4* __restrict__ b, float4* __restrict__ c, size_t n4) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n4) {
        float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}
// ANCHOR_END: kernel

static int launch(const float* a, const float* b, float* c, size_t n, cudaStream_t stream) {
    vector_add<<<(unsigned)((n / 4 + 255) / 256), 256, 0, stream>>>((const float4*)a, (const float4*)b, (float4*)c, n / 4);
    return cudaGetLastError();
}

static int prefetch(const void* memory, size_t bytes, int device, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
    cudaMemLocation place = {device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                             device == cudaCpuDeviceId ? 0 : device};
    return cudaMemPrefetchAsync(memory, bytes, place, 0, stream);
#else
    return cudaMemPrefetchAsync(memory, bytes, device, stream);
#endif
}

// Adds n managed floats, n a multiple of 4, wherever they are, and waits.
extern "C" int peer_add(const float* a, const float* b, float* c, size_t n, cudaStream_t stream) {
    int error = launch(a, b, c, n, stream);
    return error ? error : cudaStreamSynchronize(stream);
}

// ANCHOR: add
// As peer_add, with the pages brought to the device before, and the sum's brought back.
extern "C" int peer_prefetched(const float* a, const float* b, float* c, size_t n, int device, cudaStream_t stream) {
    size_t bytes = n * sizeof(float);
    int error = prefetch(a, bytes, device, stream);
    error = error ? error : prefetch(b, bytes, device, stream);
    error = error ? error : prefetch(c, bytes, device, stream);
    error = error ? error : launch(a, b, c, n, stream);
    error = error ? error : prefetch(c, bytes, cudaCpuDeviceId, stream);
    return error ? error : cudaStreamSynchronize(stream);
}
// ANCHOR_END: add
