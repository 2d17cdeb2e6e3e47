"""Chapter 2 with Numba: `cuda.grid(2)` is the index arithmetic, in two dimensions."""

import numpy as np

if not hasattr(np, "row_stack"):  # Numba 0.68 still asks for a name that NumPy 2.5 has dropped
    np.row_stack = np.vstack

import numba
from numba import cuda

import peer

# ANCHOR: plane
@cuda.jit
def plane(block, thread):
    x, y = cuda.grid(2)
    if y < block.shape[0] and x < block.shape[1]:
        block[y, x] = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        thread[y, x] = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x


block, thread = (cuda.device_array((peer.SIDE, peer.SIDE), np.uint32) for _ in range(2))
grid = ((peer.SIDE + 31) // 32, (peer.SIDE + 7) // 8)
plane[grid, (32, 8)](block, thread)
# ANCHOR_END: plane
peer.check_plane(block.copy_to_host(), thread.copy_to_host())


def event():
    now = cuda.event(timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cuda.event_elapsed_time(begin, end)


launcher = plane[grid, (32, 8)]
seconds = peer.median_event_seconds(event, elapsed_ms, lambda: launcher(block, thread))
peer.report_rate("Numba", numba.__version__, 8 * peer.SIDE**2, seconds)
