// Bytes of one word, each another thread's: no race. A word of them while others write: a race.
//
// run: broken, block 64, check race
//   out u32 16*0
// run: right, block 64, fine
//   out u32 16*0x01010101
extern "C" __global__ void broken(unsigned* out) {
    __shared__ __align__(4) unsigned char bytes[64];
    unsigned i = threadIdx.x;
    bytes[i] = 1;
    if (i < 16)
        out[i] = reinterpret_cast<unsigned*>(bytes)[i];
}
extern "C" __global__ void right(unsigned* out) {
    __shared__ __align__(4) unsigned char bytes[64];
    unsigned i = threadIdx.x;
    bytes[i] = 1;
    bytes[i] = bytes[i];
    __syncthreads();
    if (i < 16)
        out[i] = reinterpret_cast<unsigned*>(bytes)[i];
}
