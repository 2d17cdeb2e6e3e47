// Transpose, a failure: without shared memory.
//
// The idea: if a thread takes 8 rows of 4 columns, it has whole sectors of `c` in its registers, 8
// floats for each of its columns, and can write them without any help. It takes two stores of 16
// bytes to fill a sector, though, and each of them touches 32 sectors and fills half of each.
// Launch: blocks of 8 x 8 threads, one for each tile of 64 rows and 32 columns; x runs along a column
// of `a`. `a` and `c` must lie on 16-byte boundaries. Where a side is no multiple of 8, the elements
// travel one by one.
extern "C" __global__ void __launch_bounds__(64)
    transpose_07_registers(const float* __restrict__ a, float* __restrict__ c, unsigned int rows,
                           unsigned int columns) {
    // Where am I? Four columns of `a`, and eight rows.
    unsigned int column = blockIdx.y * 32 + 4 * threadIdx.x;
    unsigned int row = blockIdx.x * 64 + 8 * threadIdx.y;

    if (rows % 8 == 0 && columns % 8 == 0 && row < rows && column < columns) {
        __align__(16) float v[8][4];
#pragma unroll
        for (unsigned int k = 0; k < 8; ++k) {
            const float* first = a + (size_t)(row + k) * columns + column;
            *reinterpret_cast<float4*>(v[k]) = *reinterpret_cast<const float4*>(first);
        }
#pragma unroll
        for (unsigned int k = 0; k < 4; ++k) {
            float4* first = reinterpret_cast<float4*>(c + (size_t)(column + k) * rows + row);
            first[0] = make_float4(v[0][k], v[1][k], v[2][k], v[3][k]);
            first[1] = make_float4(v[4][k], v[5][k], v[6][k], v[7][k]);
        }
    } else {
#pragma unroll 1
        for (unsigned int k = 0; k < 32; ++k) {
            if (row + k / 4 < rows && column + k % 4 < columns) {
                size_t from = (size_t)(row + k / 4) * columns + column + k % 4;
                c[(size_t)(column + k % 4) * rows + row + k / 4] = a[from];
            }
        }
    }
}
