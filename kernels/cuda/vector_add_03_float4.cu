// Vector add, step 3: one thread adds four neighbouring elements, with 16-byte loads and stores.
//
// New: a quarter of the memory instructions for the same bytes, so that more bytes are on their way
// at any time. That is what it takes to come near the copy ceiling (copy_01_float4).
// Launch: one-dimensional, at least `n / 4` threads, rounded up. `a`, `b` and `c` must lie on
// 16-byte boundaries: an allocation does, a slice of one may not.
extern "C" __global__ void vector_add_03_float4(const float* __restrict__ a,
                                                const float* __restrict__ b, float* __restrict__ c,
                                                size_t n) {
    // Where am I? My first element, of four.
    size_t i = 4 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);

    if (i + 4 <= n) {
        float4 x = *reinterpret_cast<const float4*>(a + i);
        float4 y = *reinterpret_cast<const float4*>(b + i);
        *reinterpret_cast<float4*>(c + i) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    } else {
        // The tail: at most three elements, and one thread of the whole grid has them. Unrolling
        // would pay for nothing.
#pragma unroll 1
        for (; i < n; ++i) {
            c[i] = a[i] + b[i];
        }
    }
}
