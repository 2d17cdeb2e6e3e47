"""Chapter 3 with Numba: the padded tile, written in Python."""

import numpy as np

if not hasattr(np, "row_stack"):  # Numba 0.68 still asks for a name that NumPy 2.5 has dropped
    np.row_stack = np.vstack

import numba
from numba import cuda, float32

import ch03_peer
import peer


# ANCHOR: transpose
@cuda.jit
def transpose(a, c):
    tile = cuda.shared.array((32, 33), float32)  # a column more than needed, against bank conflicts
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.blockIdx.x * 32 + x, cuda.blockIdx.y * 32 + y
    for k in range(0, 32, 8):
        if row + k < a.shape[0] and column < a.shape[1]:
            tile[y + k, x] = a[row + k, column]
    cuda.syncthreads()
    column, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    for k in range(0, 32, 8):
        if row + k < c.shape[0] and column < c.shape[1]:
            c[row + k, column] = tile[x, y + k]
# ANCHOR_END: transpose


a = ch03_peer.matrix()
device_a, device_c = cuda.to_device(a), cuda.device_array_like(a)
launcher = transpose[(ch03_peer.SIDE // 32, ch03_peer.SIDE // 32), (32, 8)]
launcher(device_a, device_c)
ch03_peer.check(a, device_c.copy_to_host())


def event():
    now = cuda.event(timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


seconds = peer.median_event_seconds(event, elapsed_ms, lambda: launcher(device_a, device_c))
ch03_peer.report("Numba", numba.__version__, seconds)
