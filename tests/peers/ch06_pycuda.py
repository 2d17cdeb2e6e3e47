"""Chapter 6 with PyCUDA: managed_empty is a NumPy array whose memory the device shares."""

import numpy as np
import pycuda
import pycuda.autoinit
import pycuda.driver as driver
from pycuda.compiler import SourceModule

import ch06_peer
import peer

# ANCHOR: add
module = SourceModule("""
__global__ void vector_add(const float* a, const float* b, float* c, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
""")
vector_add = module.get_function("vector_add")


def managed():
    return driver.managed_empty(ch06_peer.N, np.float32, mem_flags=driver.mem_attach_flags.GLOBAL)


a, b, c = managed(), managed(), managed()
ch06_peer.fill(a, b)  # written in place by the CPU
grid = ((ch06_peer.N + 255) // 256, 1)
vector_add(a, b, c, np.uint64(ch06_peer.N), grid=grid, block=(256, 1, 1))
driver.Context.synchronize()  # nothing else makes the CPU wait
peer.check(a, b, c)
# ANCHOR_END: add


def add():
    vector_add(a, b, c, np.uint64(ch06_peer.N), grid=grid, block=(256, 1, 1))
    driver.Context.synchronize()


ch06_peer.report("PyCUDA", pycuda.VERSION_TEXT, *ch06_peer.cold_and_resident(add, (a, b, c)))
