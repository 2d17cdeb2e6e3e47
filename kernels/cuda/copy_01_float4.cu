// Copy with 16-byte loads and stores: the ceiling for every kernel that streams through memory.
//
// Launch: one-dimensional, at least `n / 4` threads, rounded up. `a` and `c` must lie on 16-byte
// boundaries.
extern "C" __global__ void copy_01_float4(const float* __restrict__ a, float* __restrict__ c,
                                          size_t n) {
    // Where am I? My first element, of four.
    size_t i = 4 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);

    if (i + 4 <= n) {
        *reinterpret_cast<float4*>(c + i) = *reinterpret_cast<const float4*>(a + i);
    } else {
        // The tail: at most three elements.
#pragma unroll 1
        for (; i < n; ++i) {
            c[i] = a[i];
        }
    }
}
