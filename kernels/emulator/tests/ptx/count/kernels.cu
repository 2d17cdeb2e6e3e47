// Kernels whose counts are compared with those of Nsight Compute: kernels.ptx is what NVRTC 12.0.140 makes of them for
// compute_80 with --fmad=false. The launches are the comments that `tests/launches` understands.

typedef unsigned int u32;
typedef unsigned char u8;

__device__ u32 hash(u32 x) {
    x ^= x >> 16;
    x *= 0x7feb352d;
    x ^= x >> 15;
    x *= 0x846ca68b;
    return x ^ x >> 16;
}

// Global memory.

// run: copy_scalar, grid 40, block 256
//   in  f32 10000*1
//   out f32 10000*1
//   u32 10000
extern "C" __global__ void copy_scalar(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

// run: copy_float2, grid 20, block 256
//   in  f32 10000*1
//   out f32 10000*1
//   u32 5000
extern "C" __global__ void copy_float2(const float2* in, float2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

// run: copy_float4, grid 10, block 256
//   in  f32 10000*1
//   out f32 10000*1
//   u32 2500
extern "C" __global__ void copy_float4(const float4* in, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

// run: copy_double, grid 20, block 256
//   in  f64 5000*1
//   out f64 5000*1
//   u32 5000
extern "C" __global__ void copy_double(const double* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

// run: copy_bytes, grid 40, block 256
//   in  u8 10000*1
//   out u8 10000*1
//   u32 10000
extern "C" __global__ void copy_bytes(const u8* in, u8* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

// run: copy_shifted, grid 32, block 256
//   in  f32 9000*1
//   out f32 9000*1
//   u32 1
// run: copy_shifted, grid 32, block 256
//   in  f32 9000*1
//   out f32 9000*1
//   u32 5
// run: copy_shifted, grid 32, block 256
//   in  f32 9000*1
//   out f32 9000*1
//   u32 8
extern "C" __global__ void copy_shifted(const float* in, float* out, int shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + shift;
    out[i] = in[i];
}

// run: copy_float4_shifted, grid 8, block 256
//   in  f32 9000*1
//   out f32 9000*1
//   u32 1
// run: copy_float4_shifted, grid 8, block 256
//   in  f32 9000*1
//   out f32 9000*1
//   u32 3
extern "C" __global__ void copy_float4_shifted(const float4* in, float4* out, int shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + shift;
    out[i] = in[i];
}

// run: strided, grid 4, block 256
//   in  f32 65536*1
//   out f32 1024*1
//   u32 2
// run: strided, grid 4, block 256
//   in  f32 65536*1
//   out f32 1024*1
//   u32 7
// run: strided, grid 4, block 256
//   in  f32 65536*1
//   out f32 1024*1
//   u32 64
extern "C" __global__ void strided(const float* in, float* out, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * stride];
}

struct Particle {
    float x, y, z, mass, vx, vy, vz;
};

// run: array_of_structs, grid 8, block 128
//   in  f32 7168*1
//   out f32 1024*1
extern "C" __global__ void array_of_structs(const Particle* particles, float* energy) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Particle p = particles[i];
    energy[i] = p.mass * (p.vx * p.vx + p.vy * p.vy + p.vz * p.vz);
}

// run: gather, grid 16, block 256
//   in  f32 16384*1
//   out f32 4096*1
//   u32 16383
extern "C" __global__ void gather(const float* in, float* out, u32 mask) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[hash(i) & mask];
}

// run: scatter, grid 16, block 256
//   in  f32 4096*1
//   out f32 16384*1
//   u32 16383
extern "C" __global__ void scatter(const float* in, float* out, u32 mask) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    out[hash(i) & mask] = in[i];
}

// run: divergent_loads, grid 8, block 256
//   in  f32 4096*1
//   out f32 2048*1
extern "C" __global__ void divergent_loads(const float* in, float* out) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float x;
    if (hash(i) & 1) {
        x = in[i] * 2.0f;
    } else {
        x = in[2 * i];
    }
    out[i] = x;
}

// Transposes.

// run: transpose_naive, grid 3 3, block 32 8
//   in  f32 9216*1
//   out f32 9216*1
//   u32 96
extern "C" __global__ void transpose_naive(const float* in, float* out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int row = 0; row < 32; row += 8) {
        int y = blockIdx.y * 32 + threadIdx.y + row;
        out[x * n + y] = in[y * n + x];
    }
}

// run: transpose_tiled, grid 3 3, block 32 8
//   in  f32 9216*1
//   out f32 9216*1
//   u32 96
extern "C" __global__ void transpose_tiled(const float* in, float* out, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int row = threadIdx.y; row < 32; row += 8)
        tile[row][threadIdx.x] = in[(blockIdx.y * 32 + row) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    for (int row = threadIdx.y; row < 32; row += 8)
        out[(blockIdx.x * 32 + row) * n + x] = tile[threadIdx.x][row];
}

// run: transpose_padded, grid 3 3, block 32 8
//   in  f32 9216*1
//   out f32 9216*1
//   u32 96
extern "C" __global__ void transpose_padded(const float* in, float* out, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int row = threadIdx.y; row < 32; row += 8)
        tile[row][threadIdx.x] = in[(blockIdx.y * 32 + row) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    for (int row = threadIdx.y; row < 32; row += 8)
        out[(blockIdx.x * 32 + row) * n + x] = tile[threadIdx.x][row];
}

// run: transpose_swizzled, grid 3 3, block 32 8
//   in  f32 9216*1
//   out f32 9216*1
//   u32 96
extern "C" __global__ void transpose_swizzled(const float* in, float* out, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int row = threadIdx.y; row < 32; row += 8) {
        tile[row][threadIdx.x ^ row] = in[(blockIdx.y * 32 + row) * n + x];
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    for (int row = threadIdx.y; row < 32; row += 8) {
        out[(blockIdx.x * 32 + row) * n + x] = tile[threadIdx.x][row ^ threadIdx.x];
    }
}

// Reductions and scans.

// run: sum_atomics, grid 8, block 256
//   in  u32 2048*1
//   in  u32 0
extern "C" __global__ void sum_atomics(const u32* in, u32* out) {
    atomicAdd(out, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

// run: sum_interleaved, grid 8, block 256
//   in  f32 2048*1
//   out f32 8*256
extern "C" __global__ void sum_interleaved(const float* in, float* out) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int stride = 1; stride < 256; stride *= 2) {
        int i = 2 * stride * t;
        if (i < 256)
            part[i] += part[i + stride];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

// run: sum_sequential, grid 8, block 256
//   in  f32 2048*1
//   out f32 8*256
extern "C" __global__ void sum_sequential(const float* in, float* out) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int stride = 128; stride > 0; stride /= 2) {
        if (t < stride)
            part[t] += part[t + stride];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

// run: sum_shuffle, grid 8, block 256
//   in  f32 2048*1
//   out f32 8*256
extern "C" __global__ void sum_shuffle(const float* in, float* out) {
    __shared__ float part[8];
    int t = threadIdx.x;
    float sum = in[blockIdx.x * 256 + t];
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, lanes);
    if (t % 32 == 0)
        part[t / 32] = sum;
    __syncthreads();
    if (t < 8) {
        sum = part[t];
        for (int lanes = 4; lanes > 0; lanes /= 2)
            sum += __shfl_down_sync(0xff, sum, lanes);
        if (t == 0)
            out[blockIdx.x] = sum;
    }
}

// run: scan_hillis_steele, grid 4, block 256
//   in  f32 1024*1
//   out f32 4*0 1020*0
extern "C" __global__ void scan_hillis_steele(const float* in, float* out) {
    __shared__ float part[2][256];
    int t = threadIdx.x, from = 0;
    part[0][t] = in[blockIdx.x * 256 + t];
    for (int offset = 1; offset < 256; offset *= 2) {
        __syncthreads();
        part[1 - from][t] = t >= offset ? part[from][t] + part[from][t - offset] : part[from][t];
        from = 1 - from;
    }
    out[blockIdx.x * 256 + t] = part[from][t];
}

// run: scan_blelloch, grid 4, block 128
//   in  f32 1024*1
//   out f32 1024*0
extern "C" __global__ void scan_blelloch(const float* in, float* out) {
    __shared__ float part[256];
    int t = threadIdx.x, offset = 1;
    part[2 * t] = in[blockIdx.x * 256 + 2 * t];
    part[2 * t + 1] = in[blockIdx.x * 256 + 2 * t + 1];
    for (int d = 128; d > 0; d /= 2) {
        __syncthreads();
        if (t < d)
            part[offset * (2 * t + 2) - 1] += part[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0)
        part[255] = 0;
    for (int d = 1; d < 256; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            float x = part[a];
            part[a] = part[b];
            part[b] += x;
        }
    }
    __syncthreads();
    out[blockIdx.x * 256 + 2 * t] = part[2 * t];
    out[blockIdx.x * 256 + 2 * t + 1] = part[2 * t + 1];
}

// run: softmax, grid 6, block 128
//   in  f32 3000*1
//   out f32 3000*0
//   u32 500
extern "C" __global__ void softmax(const float* in, float* out, int n) {
    __shared__ float part[128];
    const float* x = in + blockIdx.x * n;
    int t = threadIdx.x;
    float most = -3.0e38f;
    for (int i = t; i < n; i += 128)
        most = fmaxf(most, x[i]);
    part[t] = most;
    __syncthreads();
    for (int stride = 64; stride > 0; stride /= 2) {
        if (t < stride)
            part[t] = fmaxf(part[t], part[t + stride]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    float sum = 0;
    for (int i = t; i < n; i += 128)
        sum += expf(x[i] - most);
    part[t] = sum;
    __syncthreads();
    for (int stride = 64; stride > 0; stride /= 2) {
        if (t < stride)
            part[t] += part[t + stride];
        __syncthreads();
    }
    for (int i = t; i < n; i += 128)
        out[blockIdx.x * n + i] = expf(x[i] - most) / part[0];
}

// run: layer_norm, grid 40, block 256
//   in  f32 15360*1
//   out f32 15360*0
//   u32 48
extern "C" __global__ void layer_norm(const float* in, float* out, int n) {
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* x = in + row * n;
    float sum = 0, squares = 0;
    for (int i = lane; i < n; i += 32) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, lanes);
        squares += __shfl_xor_sync(0xffffffff, squares, lanes);
    }
    float mean = sum / n, scale = rsqrtf(squares / n - mean * mean + 1e-5f);
    for (int i = lane; i < n; i += 32)
        out[row * n + i] = (x[i] - mean) * scale;
}

// Atomics.

// run: histogram_global, grid 8, block 256
//   in  u32 256*0
extern "C" __global__ void histogram_global(u32* bins) {
    atomicAdd(&bins[hash(blockIdx.x * blockDim.x + threadIdx.x) & 255], 1);
}

// run: histogram_shared, grid 8, block 256
//   in  u32 256*0
extern "C" __global__ void histogram_shared(u32* bins) {
    __shared__ u32 own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < 4; i++)
        atomicAdd(&own[hash((blockIdx.x * 4 + i) * blockDim.x + threadIdx.x) & 255], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// run: histogram_few_bins, grid 8, block 256
//   in  u32 4*0
extern "C" __global__ void histogram_few_bins(u32* bins) {
    __shared__ u32 own[4];
    if (threadIdx.x < 4)
        own[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&own[hash(blockIdx.x * blockDim.x + threadIdx.x) & 3], 1);
    __syncthreads();
    if (threadIdx.x < 4)
        atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// run: float_atomics, grid 4, block 256
//   in  f32 64*0
extern "C" __global__ void float_atomics(float* sums) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sums[i % 64], 1.0f);
}

// run: ticket, grid 4, block 64
//   in  u32 0
//   out u32 256*0
extern "C" __global__ void ticket(u32* next, u32* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1);
}

// run: long_atomics, grid 4, block 64
//   in  u64 64*0
extern "C" __global__ void long_atomics(unsigned long long* sums) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sums[hash(i) & 63], 1ull);
}

// Matrices.

// run: sgemm_naive, grid 2 8, block 32 8
//   in  f32 4096*1
//   in  f32 4096*1
//   out f32 4096*64
//   u32 64
extern "C" __global__ void sgemm_naive(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum = fmaf(a[row * n + k], b[k * n + col], sum);
    c[row * n + col] = sum;
}

// run: sgemm_tiled, grid 4 4, block 16 16
//   in  f32 4096*1
//   in  f32 4096*1
//   out f32 4096*64
//   u32 64
extern "C" __global__ void sgemm_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float a_tile[16][16], b_tile[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k0 = 0; k0 < n; k0 += 16) {
        a_tile[y][x] = a[row * n + k0 + x];
        b_tile[y][x] = b[(k0 + y) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum = fmaf(a_tile[y][k], b_tile[k][x], sum);
        __syncthreads();
    }
    c[row * n + col] = sum;
}

// run: sgemm_register_tile, grid 1 1, block 16 16
//   in  f32 4096*1
//   in  f32 4096*1
//   out f32 4096*64
//   u32 64
extern "C" __global__ void sgemm_register_tile(const float* a, const float* b, float* c, int n) {
    __shared__ __align__(16) float a_tile[16][64], b_tile[16][64];
    int x = threadIdx.x, y = threadIdx.y, t = y * 16 + x;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < n; k0 += 16) {
        for (int i = t; i < 1024; i += 256) {
            a_tile[i % 16][i / 16] = a[(blockIdx.y * 64 + i / 16) * n + k0 + i % 16];
            b_tile[i / 64][i % 64] = b[(k0 + i / 64) * n + blockIdx.x * 64 + i % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            float4 p = *(float4*)&a_tile[k][4 * y], q = *(float4*)&b_tile[k][4 * x];
            float left[4] = {p.x, p.y, p.z, p.w}, right[4] = {q.x, q.y, q.z, q.w};
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4*)&c[(blockIdx.y * 64 + 4 * y + i) * n + blockIdx.x * 64 + 4 * x] =
            make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}

// run: stencil, grid 4 4, block 16 16
//   in  f32 4356*1
//   out f32 4096*0
extern "C" __global__ void stencil(const float* in, float* out) {
    __shared__ float tile[18][18];
    int x = threadIdx.x, y = threadIdx.y;
    for (int i = y * 16 + x; i < 324; i += 256) {
        tile[i / 18][i % 18] = in[(blockIdx.y * 16 + i / 18) * 66 + blockIdx.x * 16 + i % 18];
    }
    __syncthreads();
    out[(blockIdx.y * 16 + y) * 64 + blockIdx.x * 16 + x] =
        0.2f * (tile[y + 1][x + 1] + tile[y][x + 1] + tile[y + 2][x + 1] + tile[y + 1][x] +
                tile[y + 1][x + 2]);
}

// run: sparse_rows, grid 4, block 64
//   in  f32 8192*1
//   in  f32 1024*1
//   out f32 256*0
extern "C" __global__ void sparse_rows(const float* values, const float* x, float* y) {
    u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    u32 first = row * 32, count = hash(row) & 31;
    float sum = 0;
    for (u32 k = first; k < first + count; k++)
        sum += values[k] * x[hash(k) & 1023];
    y[row] = sum;
}

// Shared memory by width.

// run: bitonic_sort, grid 2, block 256
//   out u32 512*0
extern "C" __global__ void bitonic_sort(u32* out) {
    __shared__ u32 keys[256];
    u32 t = threadIdx.x;
    keys[t] = hash(blockIdx.x * 256 + t);
    for (u32 size = 2; size <= 256; size *= 2) {
        for (u32 stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            u32 other = t ^ stride;
            if (other > t) {
                u32 a = keys[t], b = keys[other];
                if ((a > b) == ((t & size) == 0)) {
                    keys[t] = b;
                    keys[other] = a;
                }
            }
        }
    }
    __syncthreads();
    out[blockIdx.x * 256 + t] = keys[t];
}

// run: shared_doubles, block 256
//   out f64 256*0
//   u32 1
// run: shared_doubles, block 256
//   out f64 256*0
//   u32 5
// run: shared_doubles, block 256, check bounds
//   out f64 256*0
//   u32 16
extern "C" __global__ void shared_doubles(double* out, u32 stride) {
    __shared__ double part[256];
    u32 t = threadIdx.x;
    part[t * stride & 255] = t;
    __syncthreads();
    out[t] = part[(t * stride + 3) & 255];
}

// run: shared_float4, block 256
//   out f32 1024*0
//   u32 1
// run: shared_float4, block 256
//   out f32 1024*0
//   u32 3
// run: shared_float4, block 256, check bounds
//   out f32 1024*0
//   u32 8
extern "C" __global__ void shared_float4(float4* out, u32 stride) {
    __shared__ float4 part[256];
    u32 t = threadIdx.x;
    part[t * stride & 255] = make_float4(t, t, t, t);
    __syncthreads();
    out[t] = part[(t * stride + 5) & 255];
}

// run: shared_bytes, block 256
//   out u8 256*0
extern "C" __global__ void shared_bytes(u8* out) {
    __shared__ u8 part[256];
    u32 t = threadIdx.x;
    part[t] = hash(t);
    __syncthreads();
    out[t] = part[hash(t) & 255];
}

// Other spaces.

// run: local_array, grid 2, block 64
//   out u32 128*0
extern "C" __global__ void local_array(u32* out) {
    u32 own[16];
    u32 t = blockIdx.x * 64 + threadIdx.x;
    for (u32 i = 0; i < 16; i++)
        own[hash(i) & 15] = i + t;
    u32 sum = 0;
    for (u32 i = 0; i < 8; i++)
        sum += own[hash(t + i) & 15];
    out[t] = sum;
}

__constant__ float table[64] = {1, 2, 3};

// run: constant_table, grid 2, block 64
//   out f32 128*0
extern "C" __global__ void constant_table(float* out) {
    u32 t = blockIdx.x * 64 + threadIdx.x;
    out[t] = table[3] + table[t & 63];
}
