"""Chapter 1 with Numba: the kernel is a Python function, compiled when it is first launched."""

import numpy as np

if not hasattr(np, "row_stack"):  # Numba 0.68 still asks for a name that NumPy 2.5 has dropped
    np.row_stack = np.vstack

import numba
from numba import cuda

import peer

# ANCHOR: add
@cuda.jit
def vector_add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


a, b = peer.inputs(peer.N)
device_a, device_b = cuda.to_device(a), cuda.to_device(b)  # allocate, copy to the device
device_c = cuda.device_array_like(a)  # allocate
vector_add[(len(a) + 255) // 256, 256](device_a, device_b, device_c)  # compile on first use, launch
c = device_c.copy_to_host()  # wait, copy back
# ANCHOR_END: add
peer.check(a, b, c)


def event():
    now = cuda.event(timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


launcher = vector_add[(peer.N + 255) // 256, 256]
kernel = peer.median_event_seconds(event, elapsed_ms, lambda: launcher(device_a, device_b, device_c))
small = [cuda.to_device(a[:1024]) for _ in range(3)]
launcher = vector_add[4, 256]
launch = peer.launch_seconds(lambda: launcher(*small), cuda.synchronize)
host_a, host_b = a[: peer.N_END_TO_END], b[: peer.N_END_TO_END]
device_c = cuda.device_array_like(host_a)
launcher = vector_add[(peer.N_END_TO_END + 255) // 256, 256]


def round_trip():
    launcher(cuda.to_device(host_a), cuda.to_device(host_b), device_c)
    device_c.copy_to_host()


peer.report("Numba", numba.__version__, kernel, launch, peer.median_seconds(round_trip, repeats=7))
