// Transpose, step 6: the blocks go along the rows of `c`.
//
// New: neighbouring blocks, which run at about the same time, write neighbouring tiles of `c` and
// read tiles of `a` that lie below each other. Memory takes writes better in long rows.
// Launch: blocks of 16 x 16 threads, one for each tile of 64 x 64 elements; x runs along a column of
// `a`. `a` and `c` must lie on 16-byte boundaries. Where a side is no multiple of 4, rows do not, and
// the elements travel one by one.
constexpr unsigned int TILE = 64;

extern "C" __global__ void __launch_bounds__(256)
    transpose_06_order(const float* __restrict__ a, float* __restrict__ c, unsigned int rows,
                       unsigned int columns) {
    __shared__ float4 tile[TILE][TILE / 4];
    bool wide = rows % 4 == 0 && columns % 4 == 0;

    // Where am I? Four columns of `a`, and four rows.
    unsigned int tile_column = blockIdx.y * TILE;
    unsigned int tile_row = blockIdx.x * TILE;
    unsigned int column = tile_column + 4 * threadIdx.x;
    unsigned int row = tile_row + 4 * threadIdx.y;

    __align__(16) float v[4][4] = {};
    if (wide && row < rows && column < columns) {
        // ANCHOR: load
#pragma unroll
        for (unsigned int k = 0; k < 4; ++k) {
            const float* first = a + (size_t)(row + k) * columns + column;
            *reinterpret_cast<float4*>(v[k]) = *reinterpret_cast<const float4*>(first);
        }
        // ANCHOR_END: load
    } else {
#pragma unroll
        for (unsigned int k = 0; k < 16; ++k) {
            if (row + k / 4 < rows && column + k % 4 < columns) {
                v[k / 4][k % 4] = a[(size_t)(row + k / 4) * columns + column + k % 4];
            }
        }
    }

    // ANCHOR: turn
    // Column k of the 4 x 4 elements becomes a vector of row 4 * threadIdx.x + k of the tile.
    unsigned int place = threadIdx.y ^ threadIdx.x % 8;
#pragma unroll
    for (unsigned int k = 0; k < 4; ++k) {
        tile[4 * threadIdx.x + k][place] = make_float4(v[0][k], v[1][k], v[2][k], v[3][k]);
    }
    __syncthreads();
    // ANCHOR_END: turn

    // Where do I write? Four columns of `c`, and four rows, sixteen apart.
    column = tile_row + 4 * threadIdx.x;
#pragma unroll
    for (unsigned int k = 0; k < TILE; k += 16) {
        row = tile_column + threadIdx.y + k;
        if (row < columns && column < rows) {
            float4 w = tile[threadIdx.y + k][threadIdx.x ^ (threadIdx.y + k) / 4 % 8];
            float* first = c + (size_t)row * rows + column;
            if (wide) {
                *reinterpret_cast<float4*>(first) = w;
            } else {
                first[0] = w.x;
                if (column + 1 < rows) {
                    first[1] = w.y;
                }
                if (column + 2 < rows) {
                    first[2] = w.z;
                }
                if (column + 3 < rows) {
                    first[3] = w.w;
                }
            }
        }
    }
}
