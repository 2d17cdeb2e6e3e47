"""Chapter 5 with CuPy: RawKernel and RawModule hand the string to NVRTC, as this book does."""

import cupy as cp
import numpy as np

import peer

# ANCHOR: add
SOURCE = """
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
"""
vector_add = cp.RawKernel(SOURCE, "vector_add")  # compiled at the first launch, a cache in the home folder

a, b = peer.inputs(peer.N)
device_a, device_b = cp.asarray(a), cp.asarray(b)
device_c = cp.empty_like(device_a)
vector_add(((len(a) + 255) // 256,), (256,), (device_a, device_b, device_c, np.uint64(len(a))))
c = cp.asnumpy(device_c)
# ANCHOR_END: add
peer.check(a, b, c)

# ANCHOR: template
TEMPLATE = """
template <typename T, int DEGREE>
__global__ void polynomial(const T* x, T* y, size_t n, const T* coefficients) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        T sum = coefficients[DEGREE];
#pragma unroll
        for (int k = DEGREE - 1; k >= 0; --k) {
            sum = fma(sum, x[i], coefficients[k]);
        }
        y[i] = sum;
    }
}
"""
module = cp.RawModule(code=TEMPLATE, name_expressions=["polynomial<float, 24>"], options=("-std=c++17",))
polynomial = module.get_function("polynomial<float, 24>")  # CuPy asks for the lowered name
# ANCHOR_END: template
x, coefficients = cp.asarray(a[:1000]), cp.ones(25, cp.float32)
y = cp.empty_like(x)
polynomial((4,), (256,), (x, y, np.uint64(1000), coefficients))
peer.check_close("polynomial", cp.asnumpy(y), np.polyval(np.ones(25), a[:1000].astype(np.float64)), 1e-6)


def event():
    now = cp.cuda.Event()
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cp.cuda.get_elapsed_time(begin, end)


def build(salt):
    cp.RawKernel(f"__device__ unsigned salt = {salt}u;\n{SOURCE}", "vector_add").compile()


small = (device_a, device_b, device_c, np.uint64(1024))
all_of_it = (device_a, device_b, device_c, np.uint64(peer.N))
compiled = peer.first_seconds(build)
kernel = peer.median_event_seconds(event, elapsed_ms, lambda: vector_add((peer.N // 256,), (256,), all_of_it))
launch = peer.launch_seconds(lambda: vector_add((4,), (256,), small), cp.cuda.Device().synchronize)
peer.report_compiled("CuPy RawKernel", cp.__version__, compiled, kernel, launch)
