"""Chapter 6 with Numba: cuda.managed_array is a NumPy array that kernels take as it is."""

import numpy as np

if not hasattr(np, "row_stack"):  # Numba 0.68 still asks for a name that NumPy 2.5 has dropped
    np.row_stack = np.vstack

import numba
from numba import cuda

import ch06_peer
import peer


# ANCHOR: add
@cuda.jit
def vector_add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


a, b, c = (cuda.managed_array(ch06_peer.N, dtype=np.float32) for _ in range(3))
ch06_peer.fill(a, b)  # written in place by the CPU
launcher = vector_add[(ch06_peer.N + 255) // 256, 256]
launcher(a, b, c)
cuda.synchronize()  # nothing else makes the CPU wait
peer.check(a, b, c)
# ANCHOR_END: add


def add():
    launcher(a, b, c)
    cuda.synchronize()


ch06_peer.report("Numba", numba.__version__, *ch06_peer.cold_and_resident(add, (a, b, c)))
