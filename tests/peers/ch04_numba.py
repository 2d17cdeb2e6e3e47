"""Chapter 4 with Numba: a reduction made from a Python function, and a histogram kernel in Python."""

import numpy as np

if not hasattr(np, "row_stack"):  # Numba 0.68 still asks for a name that NumPy 2.5 has dropped
    np.row_stack = np.vstack

import numba
from numba import cuda, types

import peer


# ANCHOR: reduce
@cuda.reduce
def total(x, y):
    return x + y


@cuda.jit
def histogram(a, bins):
    counts = cuda.shared.array(256, types.int32)
    if cuda.threadIdx.x < 256:
        counts[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, a[i], 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 256:
        cuda.atomic.add(bins, cuda.threadIdx.x, counts[cuda.threadIdx.x])


# ANCHOR_END: reduce
a, _ = peer.inputs(peer.N)
device_a = cuda.to_device(a)
host_bytes = peer.random_bytes(peer.N)
device_bytes = cuda.to_device(host_bytes)
bins = cuda.to_device(np.zeros(256, np.int32))
sum_on_device = cuda.to_device(np.zeros(1, np.float32))
histogram[264, 512](device_bytes, bins)
total(device_a, res=sum_on_device)
peer.check_close("sum", sum_on_device.copy_to_host()[0], a.sum(dtype=np.float64), 1e-5)
peer.check_close("histogram", bins.copy_to_host(), np.bincount(host_bytes, minlength=256), 0)


def event():
    now = cuda.event(timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


def rate(bytes_moved, work, batch=4):
    return bytes_moved / peer.median_event_seconds(event, elapsed_ms, work, batch=batch) / 1e9


launcher = histogram[264, 512]
peer.report_rates(
    "Numba",
    numba.__version__,
    sum=rate(4 * peer.N, lambda: total(device_a, res=sum_on_device), batch=1),
    histogram=rate(peer.N, lambda: launcher(device_bytes, bins)),
)
