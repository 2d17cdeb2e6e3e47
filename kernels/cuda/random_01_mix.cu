// Random numbers by hand: floats in [0, 1), each from its own index.
//
// New: no state is carried from number to number. A mixing function makes 64 bits in no visible
// order of seed and index, so that every thread has its number at once, and the same one on every
// device. SplitMix64, by Sebastiano Vigna: https://prng.di.unimi.it/splitmix64.c. Bound by
// instructions: a multiplication of 64 bits is several of 32.
// Launch: one-dimensional, a thread for every number.
extern "C" __global__ void random_01_mix(float* __restrict__ c, size_t n, unsigned long long seed) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }

    // ANCHOR: mix
    unsigned long long z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z = z ^ (z >> 31);
    c[i] = (float)(unsigned int)(z >> 40) * 5.9604644775390625e-8f; // 24 bits times 2^-24
    // ANCHOR_END: mix
}
