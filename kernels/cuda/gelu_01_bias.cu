// Bias and activation by hand: y = gelu(x + bias), for a matrix of rows.
//
// New: the bias has one number for each column, and every row gets the same. GELU is the form with
// tanh that cuBLASLt and PyTorch's `approximate="tanh"` compute; D. Hendrycks and K. Gimpel,
// Gaussian Error Linear Units, arXiv 1606.08415. Bound by memory and by
// tanh: 8 bytes for each element.
// Launch: one-dimensional, a thread for every element.
extern "C" __global__ void gelu_01_bias(const float* __restrict__ x, const float* __restrict__ bias,
                                        float* __restrict__ y, unsigned int rows,
                                        unsigned int columns) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (size_t)rows * columns) {
        return;
    }

    // ANCHOR: gelu
    float z = x[i] + bias[i % columns];
    float inner = 0.7978845608f * fmaf(0.044715f * z * z, z, z); // the root of 2 / pi
    y[i] = 0.5f * z * (1.0f + tanhf(inner));
    // ANCHOR_END: gelu
}
