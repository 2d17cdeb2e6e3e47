// Touches one float in every `stride`: the smallest use of a page that there is.
//
// New: threads that are neighbours work in different pages, and each of them changes 4 bytes of its
// own. On managed memory that is not on the device, a thread costs the move of a whole page.
// Launch: one-dimensional, at least `touched` threads. `a` holds `touched * stride` floats.
extern "C" __global__ void managed_01_sparse(float* __restrict__ a, size_t touched, size_t stride) {
    // Where am I?
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < touched) {
        a[i * stride] += 1.0f;
    }
}
