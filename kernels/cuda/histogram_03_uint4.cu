// Histogram, step 3: 16 bytes a load, two loads on their way.
//
// New: one load instruction for 16 bytes, where step 2 needed 16. Bound by conflicts: threads of a
// warp whose bytes lie in the same bank wait for each other.
// Launch: one-dimensional, `blocks` blocks of THREADS threads. `bins` must be 0 before, and `a` lie
// on a 16-byte boundary.
constexpr unsigned int THREADS = 512;
constexpr unsigned int BINS = 256;
constexpr unsigned int LOADS = 2;

// Counts the four bytes of a word.
__device__ void count_word(unsigned int* counts, unsigned int word) {
    atomicAdd(&counts[word & 0xff], 1u);
    atomicAdd(&counts[word >> 8 & 0xff], 1u);
    atomicAdd(&counts[word >> 16 & 0xff], 1u);
    atomicAdd(&counts[word >> 24], 1u);
}

// Counts the sixteen bytes of four words.
__device__ void count_words(unsigned int* counts, uint4 words) {
    count_word(counts, words.x);
    count_word(counts, words.y);
    count_word(counts, words.z);
    count_word(counts, words.w);
}

extern "C" __global__ void histogram_03_uint4(const unsigned char* __restrict__ a,
                                              unsigned int* bins, size_t n, unsigned int blocks) {
    __shared__ unsigned int counts[BINS];
    unsigned int t = threadIdx.x;

    for (unsigned int i = t; i < BINS; i += THREADS) {
        counts[i] = 0;
    }
    __syncthreads();

    const uint4* a16 = reinterpret_cast<const uint4*>(a);
    size_t n16 = n / 16;
    size_t i = (size_t)blockIdx.x * (LOADS * THREADS) + t;
    for (; i + (LOADS - 1) * THREADS < n16; i += (size_t)blocks * (LOADS * THREADS)) {
        uint4 words[LOADS];
#pragma unroll
        for (unsigned int j = 0; j < LOADS; ++j) {
            words[j] = a16[i + j * THREADS];
        }
#pragma unroll
        for (unsigned int j = 0; j < LOADS; ++j) {
            count_words(counts, words[j]);
        }
    }
    // The tail: one more load of 16, then at most 15 bytes.
    if (i < n16) {
        count_words(counts, a16[i]);
    }
    if (blockIdx.x == 0 && t < n % 16) {
        atomicAdd(&counts[a[16 * n16 + t]], 1u);
    }
    __syncthreads();

    for (unsigned int bin = t; bin < BINS; bin += THREADS) {
        if (counts[bin] != 0) {
            atomicAdd(&bins[bin], counts[bin]);
        }
    }
}
