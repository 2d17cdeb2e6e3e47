"""Chapter 5 with PyCUDA: SourceModule hands the string to nvcc, which is a program of its own."""

import numpy as np
import pycuda
import pycuda.autoinit
import pycuda.driver as driver
from pycuda.compiler import SourceModule

import peer

# ANCHOR: add
SOURCE = """
__global__ void vector_add(const float* a, const float* b, float* c, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
"""
vector_add = SourceModule(SOURCE).get_function("vector_add")  # nvcc, a cubin, a cache in the home folder

a, b = peer.inputs(peer.N)
c = np.empty_like(a)
device_a, device_b, device_c = driver.to_device(a), driver.to_device(b), driver.mem_alloc(c.nbytes)
vector_add(device_a, device_b, device_c, np.uint64(len(a)), grid=((len(a) + 255) // 256, 1), block=(256, 1, 1))
driver.memcpy_dtoh(c, device_c)
# ANCHOR_END: add
peer.check(a, b, c)


def event():
    now = driver.Event()
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return begin.time_till(end)


def add(n):
    vector_add(device_a, device_b, device_c, np.uint64(n), grid=((n + 255) // 256, 1), block=(256, 1, 1))


compiled = peer.first_seconds(lambda salt: SourceModule(f"__device__ unsigned salt = {salt}u;\n{SOURCE}", cache_dir=None))
kernel = peer.median_event_seconds(event, elapsed_ms, lambda: add(peer.N))
launch = peer.launch_seconds(lambda: add(1024), driver.Context.synchronize)
peer.report_compiled("PyCUDA", pycuda.VERSION_TEXT, compiled, kernel, launch)
