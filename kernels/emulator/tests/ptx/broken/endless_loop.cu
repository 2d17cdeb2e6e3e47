// run: broken, block 32, budget 100000, check bounds
//   out u32 0
// run: right, block 32, fine
//   out u32 32
extern "C" __global__ void broken(volatile unsigned* count) {
    // Every lane waits for a number that no lane writes.
    while (*count != 32) {
    }
}
extern "C" __global__ void right(unsigned* count) {
    atomicAdd(count, 1);
    while (*reinterpret_cast<volatile unsigned*>(count) != 32) {
    }
}
