// Compiled by NVRTC 12.0.140 to kernels.ptx: --gpu-architecture=compute_75 --fmad=false -lineinfo
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}

constexpr int TILE = 16;

extern "C" __global__ void sgemm_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += TILE) {
        a_tile[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        b_tile[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            sum = fmaf(a_tile[threadIdx.y][k], b_tile[k][threadIdx.x], sum);
        }
        __syncthreads();
    }
    c[row * n + col] = sum;
}

extern "C" __global__ void mandelbrot(int* out, int width, int height, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) {
        return;
    }
    float cx = -2.0f + 3.0f * px / width;
    float cy = -1.5f + 3.0f * py / height;
    float x = 0.0f;
    float y = 0.0f;
    int i = 0;
    while (i < limit && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        ++i;
    }
    out[py * width + px] = i;
}
