// A sparse matrix times a dense one, by hand: c = a b, with the rows of `a` compressed.
//
// New: of `a` only what is not zero is stored, row after row (CSR): row r holds the elements from
// `offsets[r]` to before `offsets[r + 1]`, their columns are in `indices`. Neighbouring threads take
// neighbouring columns of `b`, so its rows are read whole. Bound by memory.
// Launch: one-dimensional, a thread for every element of `c`.
extern "C" __global__ void
sparse_01_row(const unsigned int* __restrict__ offsets, const unsigned int* __restrict__ indices,
              const float* __restrict__ values, const float* __restrict__ b, float* __restrict__ c,
              unsigned int stored, unsigned int rows, unsigned int inner, unsigned int columns) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (size_t)rows * columns) {
        return;
    }
    size_t row = i / columns;
    size_t column = i % columns;

    // ANCHOR: row
    float sum = 0.0f;
    for (unsigned int k = offsets[row]; k < offsets[row + 1]; k++) {
        sum = fmaf(values[k], b[(size_t)indices[k] * columns + column], sum);
    }
    c[i] = sum;
    // ANCHOR_END: row
}
