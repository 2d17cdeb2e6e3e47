// Matrix products as programs write them: with mma.h, with mma.sync and asynchronous copies, with cuda::barrier.
#include <cuda/barrier>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <mma.h>

// C = A B, each warp a tile of 16 x 16; A is row-major, B column-major.
extern "C" __global__ void gemm_wmma(const half* a, const half* b, float* c, int m, int n, int k) {
    using namespace nvcuda;
    int row = blockIdx.y * 16, column = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
        wmma::load_matrix_sync(fa, a + row * k + i, k);
        wmma::load_matrix_sync(fb, b + column * k + i, k);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

__device__ unsigned address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// C = A B in blocks of 64 x 64 by four warps of 32 x 32. Two tiles of A and B are in shared memory: one is copied while
// the other is used. Both are row-major.
constexpr int TILE = 64, DEPTH = 32, PAD = 8;
extern "C" __global__ void __launch_bounds__(128) gemm_mma(const half* a, const half* b, float* c, int m, int n, int k) {
    __shared__ alignas(16) half sa[2][TILE][DEPTH + PAD];
    __shared__ alignas(16) half sb[2][DEPTH][TILE + PAD];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    float sum[2][4][4] = {};
    auto copy = [&](int stage, int i) {
        for (int chunk = thread; chunk < TILE * DEPTH / 8; chunk += 128) {
            int ra = chunk / (DEPTH / 8), ca = chunk % (DEPTH / 8) * 8;
            __pipeline_memcpy_async(&sa[stage][ra][ca], &a[(row + ra) * k + i + ca], 16);
            int rb = chunk / (TILE / 8), cb = chunk % (TILE / 8) * 8;
            __pipeline_memcpy_async(&sb[stage][rb][cb], &b[(i + rb) * n + column + cb], 16);
        }
        __pipeline_commit();
    };
    copy(0, 0);
    for (int i = 0; i < k; i += DEPTH) {
        int stage = i / DEPTH % 2;
        if (i + DEPTH < k)
            copy(stage ^ 1, i + DEPTH);
        else
            __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        for (int part = 0; part < DEPTH; part += 16) {
            unsigned fa[2][4], fb[4][2];
            for (int x = 0; x < 2; x++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fa[x][0]), "=r"(fa[x][1]), "=r"(fa[x][2]), "=r"(fa[x][3])
                             : "r"(address(&sa[stage][warp_row + x * 16 + lane % 16][part + lane / 16 * 8])));
            for (int y = 0; y < 4; y++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                             : "=r"(fb[y][0]), "=r"(fb[y][1])
                             : "r"(address(&sb[stage][part + lane % 16][warp_column + y * 8])));
            for (int x = 0; x < 2; x++)
                for (int y = 0; y < 4; y++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                                 "{%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[x][y][0]), "+f"(sum[x][y][1]), "+f"(sum[x][y][2]), "+f"(sum[x][y][3])
                                 : "r"(fa[x][0]), "r"(fa[x][1]), "r"(fa[x][2]), "r"(fa[x][3]), "r"(fb[y][0]), "r"(fb[y][1]));
        }
        __syncthreads();
    }
    for (int x = 0; x < 2; x++)
        for (int y = 0; y < 4; y++)
            for (int e = 0; e < 4; e++)
                c[(row + warp_row + x * 16 + lane / 4 + e / 2 * 8) * n + column + warp_column + y * 8 + lane % 4 * 2 + e % 2] =
                    sum[x][y][e];
}

// Each block adds 1 to its part of `a`: copied in by asynchronous copies that a barrier counts, in two rounds.
extern "C" __global__ void add_barrier(const int* a, int* b) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ barrier arrived;
    __shared__ alignas(16) int part[256];
    if (threadIdx.x == 0)
        init(&arrived, blockDim.x);
    __syncthreads();
    for (int round = 0; round < 2; round++) {
        const int* from = a + (blockIdx.x * 2 + round) * 256;
        cuda::memcpy_async(part + threadIdx.x * 4, from + threadIdx.x * 4, cuda::aligned_size_t<16>(16), arrived);
        arrived.arrive_and_wait();
        int* to = b + (blockIdx.x * 2 + round) * 256;
        for (int i = threadIdx.x; i < 256; i += blockDim.x)
            to[i] = part[255 - i] + 1;
        arrived.arrive_and_wait();
    }
}
