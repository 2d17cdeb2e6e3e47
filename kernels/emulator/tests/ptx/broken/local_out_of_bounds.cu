// run: broken, block 32, check bounds
//   u32 4096
//   out u32 32*0
// run: right, block 32, fine
//   u32 7
//   out u32 0..32
extern "C" __global__ void broken(unsigned at, unsigned* out) {
    volatile unsigned kept[8];
    kept[at] = threadIdx.x;
    out[threadIdx.x] = kept[at];
}
extern "C" __global__ void right(unsigned at, unsigned* out) {
    volatile unsigned kept[8];
    kept[at] = threadIdx.x;
    out[threadIdx.x] = kept[at];
}
