// Chapter 4's peers in CUDA C++, as a small library: CUB's sum, scan and histogram, so that they and ours are timed in
// turn in one process. The chapter's cell `peers` builds it: nvcc -O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC
// ch04_cuda.cu -o libch04_cuda.so
// Every function but the first returns the CUDA runtime's error code, 0 for success.
#include <algorithm>
#include <cstddef>
#include <cub/cub.cuh>

// How many bytes of temporary memory the calls for n elements need at most.
extern "C" size_t peer_temporary_bytes(size_t n) {
    size_t sum = 0, scan = 0, histogram = 0;
    cub::DeviceReduce::Sum(nullptr, sum, (float*)nullptr, (float*)nullptr, (int)n);
    cub::DeviceScan::InclusiveSum(nullptr, scan, (float*)nullptr, (float*)nullptr, (int)n);
    cub::DeviceHistogram::HistogramEven(nullptr, histogram, (unsigned char*)nullptr, (int*)nullptr, 257, 0, 256,
                                        (int)n);
    return std::max({sum, scan, histogram, (size_t)1});
}

// ANCHOR: sum
extern "C" int peer_sum(void* temporary, size_t bytes, const float* a, float* sum, size_t n, cudaStream_t stream) {
    return cub::DeviceReduce::Sum(temporary, bytes, a, sum, (int)n, stream);
}

extern "C" int peer_scan(void* temporary, size_t bytes, const float* a, float* c, size_t n, cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(temporary, bytes, a, c, (int)n, stream);
}

extern "C" int peer_histogram(void* temporary, size_t bytes, const unsigned char* a, int* bins, size_t n,
                              cudaStream_t stream) {
    return cub::DeviceHistogram::HistogramEven(temporary, bytes, a, bins, 257, 0, 256, (int)n, stream);
}
// ANCHOR_END: sum
