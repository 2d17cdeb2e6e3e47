// Histogram, step 3: 32 copies of the counters, one for every lane, each in a bank of its own.
//
// New: counter `bin` of lane `l` lies at `32 * bin + l`, that is in bank `l`. Whatever the bytes
// are, no two threads of a warp want the same bank. Atomic additions stay: the warps of a block
// share the copies. Bound by the loads of single bytes.
// Launch: one-dimensional, `blocks` blocks of THREADS threads. `bins` must be 0 before.
constexpr unsigned int THREADS = 512;
constexpr unsigned int BINS = 256;
constexpr unsigned int COPIES = 32;

extern "C" __global__ void histogram_03_copies(const unsigned char* __restrict__ a,
                                               unsigned int* bins, size_t n, unsigned int blocks) {
    __shared__ unsigned int counts[BINS * COPIES];
    unsigned int t = threadIdx.x;
    unsigned int lane = t % 32;

    for (unsigned int i = t; i < BINS * COPIES; i += THREADS) {
        counts[i] = 0;
    }
    __syncthreads();

    // ANCHOR: count
    size_t first = (size_t)blockIdx.x * THREADS + t;
    for (size_t i = first; i < n; i += (size_t)blocks * THREADS) {
        atomicAdd(&counts[COPIES * a[i] + lane], 1u);
    }
    __syncthreads();
    // ANCHOR_END: count

    for (unsigned int bin = t; bin < BINS; bin += THREADS) {
        // Each lane begins with another copy, so that here, too, nobody shares a bank.
        unsigned int count = 0;
        for (unsigned int copy = 0; copy < COPIES; ++copy) {
            count += counts[COPIES * bin + (copy + lane) % COPIES];
        }
        if (count != 0) {
            atomicAdd(&bins[bin], count);
        }
    }
}
