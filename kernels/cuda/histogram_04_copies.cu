// Histogram, step 4: 32 copies of the counters, one for every lane, each in a bank of its own.
//
// New: counter `bin` of lane `l` lies at `32 * bin + l`, that is in bank `l`. Whatever the bytes
// are, no two threads of a warp want the same bank. Atomic additions stay: the warps of a block
// share the copies. Bound by these, one for every byte.
// Launch: as step 3.
constexpr unsigned int THREADS = 512;
constexpr unsigned int BINS = 256;
constexpr unsigned int COPIES = 32;
constexpr unsigned int LOADS = 2;

// Counts the four bytes of a word in the lane's own copy.
__device__ void count_word(unsigned int* copy, unsigned int word) {
    atomicAdd(&copy[COPIES * (word & 0xff)], 1u);
    atomicAdd(&copy[COPIES * (word >> 8 & 0xff)], 1u);
    atomicAdd(&copy[COPIES * (word >> 16 & 0xff)], 1u);
    atomicAdd(&copy[COPIES * (word >> 24)], 1u);
}

// Counts the sixteen bytes of four words.
__device__ void count_words(unsigned int* copy, uint4 words) {
    count_word(copy, words.x);
    count_word(copy, words.y);
    count_word(copy, words.z);
    count_word(copy, words.w);
}

extern "C" __global__ void histogram_04_copies(const unsigned char* __restrict__ a,
                                               unsigned int* bins, size_t n, unsigned int blocks) {
    __shared__ unsigned int counts[BINS * COPIES];
    unsigned int t = threadIdx.x;
    unsigned int lane = t % 32;

    for (unsigned int i = t; i < BINS * COPIES; i += THREADS) {
        counts[i] = 0;
    }
    __syncthreads();

    // ANCHOR: count
    unsigned int* copy = counts + lane;
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
            count_words(copy, words[j]);
        }
    }
    // The tail: one more load of 16, then at most 15 bytes.
    if (i < n16) {
        count_words(copy, a16[i]);
    }
    if (blockIdx.x == 0 && t < n % 16) {
        atomicAdd(&copy[COPIES * a[16 * n16 + t]], 1u);
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
