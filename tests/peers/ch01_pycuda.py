"""Chapter 1 with PyCUDA: a kernel string, compiled by nvcc when the program runs."""

import numpy as np
import pycuda
import pycuda.autoinit
import pycuda.driver as driver
from pycuda.compiler import SourceModule

import peer

# ANCHOR: add
module = SourceModule("""
__global__ void vector_add(const float* a, const float* b, float* c, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
""")
vector_add = module.get_function("vector_add")

a, b = peer.inputs(peer.N)
c = np.empty_like(a)
device_a, device_b = driver.to_device(a), driver.to_device(b)  # allocate, copy to the device
device_c = driver.mem_alloc(c.nbytes)  # allocate
vector_add(device_a, device_b, device_c, np.uint64(len(a)), grid=((len(a) + 255) // 256, 1), block=(256, 1, 1))
driver.memcpy_dtoh(c, device_c)  # wait, copy back
# ANCHOR_END: add
peer.check(a, b, c)

vector_add.prepare("PPPQ")


def event():
    now = driver.Event()
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return begin.time_till(end)


def add(n):
    vector_add.prepared_call(((n + 255) // 256, 1), (256, 1, 1), device_a, device_b, device_c, n)


kernel = peer.median_event_seconds(event, elapsed_ms, lambda: add(peer.N))
launch = peer.launch_seconds(lambda: add(1024), driver.Context.synchronize)
host_a, host_b, host_c = a[: peer.N_END_TO_END], b[: peer.N_END_TO_END], c[: peer.N_END_TO_END]


def round_trip():
    driver.memcpy_htod(device_a, host_a)
    driver.memcpy_htod(device_b, host_b)
    add(peer.N_END_TO_END)
    driver.memcpy_dtoh(host_c, device_c)


peer.report("PyCUDA", pycuda.VERSION_TEXT, kernel, launch, peer.median_seconds(round_trip, repeats=7))
