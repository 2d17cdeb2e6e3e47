// Exercise: a template that counts.
//
// Each thread adds N elements that lie next to each other. N is known when the template becomes code.
// `cargo book exercise ch05 template` checks it. Stuck? Add `--hint`.
template <int N> __device__ void add(const float* a, const float* b, float* c, size_t n) {
    size_t first = N * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);
#pragma unroll
    for (int k = 0; k < N; ++k) {
        // Your turn: begin.
        if (first < n) {
            c[first + k] = a[first + k] + b[first + k];
        }
        // Your turn: end.
    }
}

extern "C" __global__ void ch05_template(const float* __restrict__ a, const float* __restrict__ b,
                                         float* __restrict__ c, size_t n) {
    add<4>(a, b, c, n);
}
