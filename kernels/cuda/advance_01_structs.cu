// Moves particles along x, from an array of structs.
//
// A particle is 8 floats, and this kernel wants 2 of them. They lie in one 32-byte sector, which no
// other particle shares: the whole sector is fetched, and three quarters of it are thrown away.
// Bound by memory. Launch: one-dimensional, at least `n` threads.
struct Particle {
    float x, y, z;
    float vx, vy, vz;
    float mass, charge;
};

extern "C" __global__ void advance_01_structs(const float* __restrict__ particles,
                                              float* __restrict__ moved, float dt, size_t n) {
    // Where am I?
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        const Particle* particle = reinterpret_cast<const Particle*>(particles) + i;
        moved[i] = fmaf(particle->vx, dt, particle->x);
    }
}
