// Exercise: who counts when two count?
//
// Count every byte in shared memory, also where several threads count the same byte at once.
// `cargo book exercise ch04 histogram` checks it. Stuck? Add `--hint`.
constexpr unsigned int BINS = 256;

extern "C" __global__ void ch04_histogram(const unsigned char* __restrict__ a,
                                          unsigned int* __restrict__ bins, size_t n) {
    __shared__ unsigned int counts[BINS];
    unsigned int t = threadIdx.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + t;
    counts[t] = 0;
    __syncthreads();

    // Your turn: begin.
    if (i < n) {
        atomicAdd(&counts[a[i]], 1);
    }
    // Your turn: end.

    __syncthreads();
    atomicAdd(&bins[t], counts[t]);
}
