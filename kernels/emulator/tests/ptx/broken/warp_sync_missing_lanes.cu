// Half of a warp waits for the whole warp, and the other half for the whole block.
//
// run: broken, block 32, check bounds
//   out u32 32*0
// run: right, block 32, fine
//   out u32 16*0 16*0
extern "C" __global__ void broken(unsigned* out) {
    unsigned lane = threadIdx.x;
    if (lane < 16)
        out[lane] = __shfl_sync(0xffffffff, lane, 0);
    else
        __syncthreads();
}
extern "C" __global__ void right(unsigned* out) {
    unsigned lane = threadIdx.x;
    if (lane < 16)
        out[lane] = __shfl_sync(0x0000ffff, lane, 0);
    __syncthreads();
}
