// Read with 16-byte loads and keep nothing: the ceiling for every kernel that reads much and writes
// little.
//
// The loop of sum_08_one_pass without its sum. The bits of all elements are combined, because the
// compiler would drop loads that lead to nothing; `kept` is written if they add up to an unlikely
// number.
// Launch: one-dimensional, `blocks` blocks of THREADS threads. `a` must lie on a 16-byte boundary.
constexpr unsigned int THREADS = 512;
constexpr unsigned int LOADS = 4;

extern "C" __global__ void __launch_bounds__(THREADS)
    read_01_float4(const float* __restrict__ a, unsigned int* __restrict__ kept, size_t n,
                   unsigned int blocks) {
    const uint4* a4 = reinterpret_cast<const uint4*>(a);
    size_t n4 = n / 4;
    unsigned int bits = 0;
    size_t i = (size_t)blockIdx.x * (LOADS * THREADS) + threadIdx.x;
    for (; i + (LOADS - 1) * THREADS < n4; i += (size_t)blocks * (LOADS * THREADS)) {
        uint4 v[LOADS];
#pragma unroll
        for (unsigned int j = 0; j < LOADS; ++j) {
            v[j] = __ldcs(a4 + i + j * THREADS);
        }
#pragma unroll
        for (unsigned int j = 0; j < LOADS; ++j) {
            bits ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
        }
    }
    if (bits == 0x5eed5eedu) {
        kept[0] = bits;
    }
}
