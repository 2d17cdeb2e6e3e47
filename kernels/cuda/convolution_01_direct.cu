// Convolution by hand: every image with every filter of 3 x 3, without a border.
//
// New: a thread computes one pixel of one result, (height - 2) x (width - 2) of them for each image
// and filter: y[image][filter][row][column]. As in every library for neural networks the filter is
// not turned around. Bound by instructions: 9 multiply-adds and some 18 loads, most from caches.
// Launch: one-dimensional, a thread for every pixel of every result.
extern "C" __global__ void convolution_01_direct(const float* __restrict__ x,
                                                 const float* __restrict__ filters,
                                                 float* __restrict__ y, unsigned int images,
                                                 unsigned int height, unsigned int width,
                                                 unsigned int count) {
    unsigned int rows = height - 2;
    unsigned int columns = width - 2;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (size_t)images * count * rows * columns) {
        return;
    }
    unsigned int column = i % columns;
    unsigned int row = i / columns % rows;
    size_t filter = i / ((size_t)columns * rows) % count;
    size_t image = i / ((size_t)columns * rows * count);

    // ANCHOR: pixel
    float sum = 0.0f;
#pragma unroll
    for (unsigned int dy = 0; dy < 3; dy++) {
#pragma unroll
        for (unsigned int dx = 0; dx < 3; dx++) {
            float pixel = x[(image * height + row + dy) * width + column + dx];
            sum = fmaf(pixel, filters[filter * 9 + dy * 3 + dx], sum);
        }
    }
    y[i] = sum;
    // ANCHOR_END: pixel
}
