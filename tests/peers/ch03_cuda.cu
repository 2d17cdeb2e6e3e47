// Chapter 3 in CUDA C++, as a small library, so that Rust and C++ are timed in turn in one process.
// The chapter's cell `peers` builds it: nvcc -O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC ch03_cuda.cu -o libch03_cuda.so
// Returns the CUDA runtime's error code, 0 for success.
#include <cstddef>
#include <cuda_runtime.h>

// ANCHOR: transpose
constexpr unsigned TILE = 32;

__global__ void transpose(const float* __restrict__ a, float* __restrict__ c, unsigned rows, unsigned columns) {
    __shared__ float tile[TILE][TILE + 1];
    unsigned column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    for (unsigned k = 0; k < TILE; k += 8)
        if (row + k < rows && column < columns)
            tile[threadIdx.y + k][threadIdx.x] = a[(size_t)(row + k) * columns + column];
    __syncthreads();
    column = blockIdx.y * TILE + threadIdx.x, row = blockIdx.x * TILE + threadIdx.y;
    for (unsigned k = 0; k < TILE; k += 8)
        if (row + k < columns && column < rows)
            c[(size_t)(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];
}
// ANCHOR_END: transpose

// Enqueues c = transpose of a, a matrix of rows x columns floats on the device.
extern "C" int peer_transpose(const float* a, float* c, unsigned rows, unsigned columns, cudaStream_t stream) {
    dim3 blocks((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE), threads(TILE, 8);
    transpose<<<blocks, threads, 0, stream>>>(a, c, rows, columns);
    return cudaGetLastError();
}
