extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
extern "C" __global__ void vector_add_stride(const float* a, const float* b, float* c, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        c[i] = a[i] + b[i];
}
extern "C" __global__ void vector_add4(const float4* a, const float4* b, float4* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
#define T 16
extern "C" __global__ void sgemm_tiled(const float* A, const float* B, float* C, int n) {
    __shared__ float As[T][T], Bs[T][T];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, col = blockIdx.x * T + tx;
    float acc = 0;
    for (int t = 0; t < (n + T - 1) / T; t++) {
        As[ty][tx] = (row < n && t * T + tx < n) ? A[row * n + t * T + tx] : 0;
        Bs[ty][tx] = (col < n && t * T + ty < n) ? B[(t * T + ty) * n + col] : 0;
        __syncthreads();
        for (int k = 0; k < T; k++)
            acc = fmaf(As[ty][k], Bs[k][tx], acc);
        __syncthreads();
    }
    if (row < n && col < n)
        C[row * n + col] = acc;
}
extern "C" __global__ void transpose(const float* a, float* b, int w, int h) {
    __shared__ float t[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < w && y + j < h)
            t[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < h && y + j < w)
            b[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void reduce(const float* a, float* out, int n) {
    __shared__ float s[32];
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        v += a[i];
    for (int o = 16; o; o >>= 1)
        v += __shfl_down_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0)
        s[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0;
        for (int o = 16; o; o >>= 1)
            v += __shfl_xor_sync(~0u, v, o);
        if (!threadIdx.x)
            atomicAdd(out, v);
    }
}
extern "C" __global__ void histogram(const unsigned char* a, unsigned* h, int n) {
    __shared__ unsigned s[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        s[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&s[a[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&h[i], s[i]);
}
extern "C" __global__ void mandelbrot(int* out, int w, int h, int max) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h)
        return;
    float cx = -2.0f + 3.0f * px / w, cy = -1.5f + 3.0f * py / h, x = 0, y = 0;
    int i = 0;
    while (i < max && x * x + y * y <= 4) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        i++;
    }
    out[py * w + px] = i;
}
extern "C" __global__ void math(const float* a, const float* b, float* o, double* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i], y = b[i];
    o[i * 20 + 0] = expf(x);
    o[i * 20 + 1] = sinf(x);
    o[i * 20 + 2] = logf(x);
    o[i * 20 + 3] = powf(x, y);
    o[i * 20 + 4] = sqrtf(x);
    o[i * 20 + 5] = x / y;
    o[i * 20 + 6] = cosf(x);
    o[i * 20 + 7] = tanhf(x);
    o[i * 20 + 8] = rsqrtf(x);
    o[i * 20 + 9] = fmaf(x, y, 1.f);
    o[i * 20 + 10] = floorf(x);
    o[i * 20 + 11] = fmodf(x, y);
    o[i * 20 + 12] = erff(x);
    o[i * 20 + 13] = __expf(x);
    o[i * 20 + 14] = __fdividef(x, y);
    o[i * 20 + 15] = rintf(x);
    o[i * 20 + 16] = atan2f(x, y);
    o[i * 20 + 17] = cbrtf(x);
    o[i * 20 + 18] = __sinf(x);
    o[i * 20 + 19] = exp2f(x);
    d[i * 8 + 0] = exp((double)x);
    d[i * 8 + 1] = sin((double)x);
    d[i * 8 + 2] = log((double)x);
    d[i * 8 + 3] = pow((double)x, (double)y);
    d[i * 8 + 4] = sqrt((double)x);
    d[i * 8 + 5] = (double)x / y;
    d[i * 8 + 6] = cos(1e10 * x);
    d[i * 8 + 7] = fma((double)x, (double)y, 1.0);
}
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter;
__device__ int lock_word;

extern "C" int printf(const char*, ...);
extern "C" __global__ void misc(int* o, long long* p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned u = o[i];
    p[i * 16 + 0] = __popc(u);
    p[i * 16 + 1] = __clz(u);
    p[i * 16 + 2] = __brev(u);
    p[i * 16 + 3] = __ffs(u);
    p[i * 16 + 4] = __byte_perm(u, i, 0x3210 + i);
    p[i * 16 + 5] = __mulhi((int)u, i);
    p[i * 16 + 6] = __umul64hi(u, ((long long)u) << 32);
    p[i * 16 + 7] = u / (i + 1);
    p[i * 16 + 8] = (long long)u % (i + 7);
    p[i * 16 + 9] = __funnelshift_l(u, i, i);
    p[i * 16 + 10] = __sad((int)u, i, 3);
    p[i * 16 + 11] = min((int)u, i);
    p[i * 16 + 12] = __ballot_sync(~0u, u & 1);
    p[i * 16 + 13] = __match_any_sync(~0u, i % 5);
    p[i * 16 + 14] = (long long)(table[i % 4] * 3.5f);
    p[i * 16 + 15] = __activemask();
    atomicMax(&counter, (int)u);
    atomicCAS(&counter, 3, 4);
    atomicExch(&counter, 7);
    while (atomicCAS(&lock_word, 0, 1) != 0)
        ;
    o[n] += 1;
    __threadfence();
    atomicExch(&lock_word, 0);
    if (i == 0)
        printf("hello %d %f %s %lld\n", i, 1.5, "world", 1ll << 40);
}
__device__ __noinline__ int fib(int n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
extern "C" __global__ void recurse(int* o) {
    o[threadIdx.x] = fib(threadIdx.x % 10);
}
extern "C" __global__ void sw(int* o) {
    int x = o[threadIdx.x];
    switch (x) {
    case 0:
        x = 5;
        break;
    case 1:
        x = 7;
        break;
    case 2:
        x = x * x + 9;
        break;
    case 3:
        x = 11;
        break;
    case 4:
        x = -1;
        break;
    case 5:
        x = 100 / x;
        break;
    case 6:
        x = 3;
        break;
    case 7:
        x = 12;
        break;
    }
    o[threadIdx.x] = x;
}
extern "C" __global__ void dyn(float* o, int n) {
    extern __shared__ float s[];
    s[threadIdx.x] = o[threadIdx.x];
    __syncthreads();
    o[threadIdx.x] = s[n - 1 - threadIdx.x];
}
