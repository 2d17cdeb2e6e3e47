// Exercise: four at a time, wherever the part begins.
//
// Double the elements of a part, four to an access where all four belong to it. The kernel works for a part that begins at
// a multiple of four, and only there.
// `cargo book exercise ch07 wide` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch07_wide(const float* __restrict__ a, float* __restrict__ c, size_t n,
                                     size_t first, size_t length) {
    size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t end = first + length < n ? first + length : n;
    // The first of the four elements that this thread looks after.
    // Your turn: begin.
    size_t i = first + 4 * thread;
    // Your turn: end.
    if (i >= first && i + 4 <= end) {
        float4 four = *reinterpret_cast<const float4*>(a + i);
        float4 twice = make_float4(2.0f * four.x, 2.0f * four.y, 2.0f * four.z, 2.0f * four.w);
        *reinterpret_cast<float4*>(c + i) = twice;
        return;
    }
    for (size_t k = i; k < i + 4; ++k) {
        if (k >= first && k < end) {
            c[k] = 2.0f * a[k];
        }
    }
}
