"""Chapter 5 with Numba: the string is Python, and the compiler LLVM's and NVIDIA's NVVM."""

import numpy as np

if not hasattr(np, "row_stack"):  # Numba 0.68 still asks for a name that NumPy 2.5 has dropped
    np.row_stack = np.vstack

import numba
from numba import cuda, float32, void

import peer

# ANCHOR: add
def vector_add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


SIGNATURE = void(float32[::1], float32[::1], float32[::1])  # what to compile for, before the first launch
kernel = cuda.jit(SIGNATURE)(vector_add)

a, b = peer.inputs(peer.N)
device_a, device_b, device_c = cuda.to_device(a), cuda.to_device(b), cuda.device_array_like(a)
kernel[(len(a) + 255) // 256, 256](device_a, device_b, device_c)
c = device_c.copy_to_host()
# ANCHOR_END: add
peer.check(a, b, c)


def event():
    now = cuda.event(timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


def build(salt):
    def add(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] + b[i] + float32(salt)

    cuda.jit(SIGNATURE)(add)


compiled = peer.first_seconds(build)
launcher = kernel[(peer.N + 255) // 256, 256]
time = peer.median_event_seconds(event, elapsed_ms, lambda: launcher(device_a, device_b, device_c))
small = [cuda.to_device(a[:1024]) for _ in range(3)]
launcher = kernel[4, 256]
launch = peer.launch_seconds(lambda: launcher(*small), cuda.synchronize)
peer.report_compiled("Numba", numba.__version__, compiled, time, launch)
