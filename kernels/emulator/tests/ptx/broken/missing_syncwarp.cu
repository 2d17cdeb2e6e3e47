// Lanes of one warp exchange values through shared memory. Since Volta they may be anywhere.
//
// run: broken, block 32, check race
//   out u32 32*0
// run: right, block 32, fine
//   out u32 1..32 0..1
extern "C" __global__ void broken(unsigned* out) {
    __shared__ unsigned values[32];
    unsigned lane = threadIdx.x;
    values[lane] = lane;
    out[lane] = values[(lane + 1) % 32];
}
extern "C" __global__ void right(unsigned* out) {
    __shared__ unsigned values[32];
    unsigned lane = threadIdx.x;
    values[lane] = lane;
    __syncwarp();
    out[lane] = values[(lane + 1) % 32];
}
