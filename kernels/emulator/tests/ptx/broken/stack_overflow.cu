// run: broken, block 1, check bounds
//   u32 1000000
//   out u32 0
// run: right, block 1, fine
//   u32 3
//   out u32 6
__device__ __noinline__ unsigned sum(unsigned n) {
    volatile unsigned kept[4] = {n, n, n, n};
    return n == 0 ? 0 : sum(n - 1) + kept[n % 4];
}
extern "C" __global__ void broken(unsigned n, unsigned* out) {
    *out = sum(n);
}
extern "C" __global__ void right(unsigned n, unsigned* out) {
    *out = sum(n);
}
