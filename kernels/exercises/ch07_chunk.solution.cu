// Exercise: one part of many.
//
// Double the elements of a from `first` on, `length` of them, as far as there are so many.
// `cargo book exercise ch07 chunk` checks it. Stuck? Add `--hint`.
extern "C" __global__ void ch07_chunk(const float* __restrict__ a, float* __restrict__ c, size_t n,
                                      size_t first, size_t length) {
    // Your turn: begin.
    size_t in_part = (size_t)blockIdx.x * blockDim.x + threadIdx.x, i = first + in_part;
    if (in_part < length && i < n) {
        c[i] = 2.0f * a[i];
    }
    // Your turn: end.
}
