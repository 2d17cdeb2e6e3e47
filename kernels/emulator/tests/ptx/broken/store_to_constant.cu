// The compiler refuses a plain store, so the pointer is hidden from it.
//
// run: broken, block 4, check bounds
// run: right, block 4, fine
__constant__ float table[4] = {1, 2, 3, 4};
__device__ float copy[4];
extern "C" __global__ void broken() {
    const float* address = &table[threadIdx.x];
    asm volatile("st.f32 [%0], 0f00000000;" ::"l"(address) : "memory");
}
extern "C" __global__ void right() {
    copy[threadIdx.x] = table[threadIdx.x];
}
