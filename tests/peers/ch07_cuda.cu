// Chapter 7 in CUDA C++: chunks in several streams, and a chain of kernels by hand and as a graph. The chapter compiles this
// by nvcc and calls it in its own process; every function returns the runtime's error code, 0 for success.
#include <cuda_runtime.h>

// ANCHOR: overlap
__global__ void work(const float* a, float* c, size_t n, unsigned rounds) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = a[i];
        for (unsigned round = 0; round < rounds; ++round) x = fmaf(x, 0.999f, 0.001f * (float)(round & 3));
        c[i] = x;
    }
}

// All floats there, through the kernel and back, chunk by chunk; the host memory is pinned. Waits for the end.
extern "C" int peer_overlap(const float* host_in, float* host_out, float* in, float* out, size_t n, unsigned rounds,
                            int chunks, cudaStream_t* streams, int count) {
    size_t length = n / chunks;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        size_t at = chunk * length, here = chunk + 1 == chunks ? n - at : length;
        cudaStream_t stream = streams[chunk % count];
        cudaMemcpyAsync(in + at, host_in + at, 4 * here, cudaMemcpyHostToDevice, stream);
        work<<<(unsigned)((here + 255) / 256), 256, 0, stream>>>(in + at, out + at, here, rounds);
        cudaMemcpyAsync(host_out + at, out + at, 4 * here, cudaMemcpyDeviceToHost, stream);
    }
    cudaError_t error = cudaGetLastError();
    return error ? error : cudaDeviceSynchronize();
}
// ANCHOR_END: overlap

// ANCHOR: graph
__global__ void step(unsigned* c, unsigned amount, unsigned n) {
    if (threadIdx.x < n) c[threadIdx.x] = 3 * c[threadIdx.x] + amount;
}

// Enqueues a chain of kernels by hand.
extern "C" int peer_chain(unsigned* c, unsigned n, int kernels, cudaStream_t stream) {
    for (int kernel = 0; kernel < kernels; ++kernel) step<<<1, 32, 0, stream>>>(c, 1, n);
    return cudaGetLastError();
}

// Captures the same chain into a graph.
extern "C" int peer_capture(unsigned* c, unsigned n, int kernels, cudaStream_t stream, cudaGraphExec_t* exec) {
    cudaGraph_t graph;
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error) return error;
    int launched = peer_chain(c, n, kernels, stream);
    error = cudaStreamEndCapture(stream, &graph);
    if (launched || error) return launched ? launched : error;
    error = cudaGraphInstantiate(exec, graph, 0);
    cudaGraphDestroy(graph);
    return error;
}

extern "C" int peer_launch(cudaGraphExec_t exec, cudaStream_t stream) { return cudaGraphLaunch(exec, stream); }
// ANCHOR_END: graph

extern "C" int peer_destroy(cudaGraphExec_t exec) { return cudaGraphExecDestroy(exec); }
