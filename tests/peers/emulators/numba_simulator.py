"""Numba's CUDA simulator on the kernels of `benches/emulators.rs`: `NUMBA_ENABLE_CUDASIM=1 python3 numba_simulator.py`.

It interprets Python, not PTX. So its rate is what our emulated GPU would count for the same launch, divided by its time:
22 instructions a thread for the sum, 1187840 for the product of two matrices of 64 x 64. It needs numba-cuda and libcudart, which the
wheel nvidia-cuda-runtime has.
"""

import os
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda, float32

TILE = 16


@cuda.jit
def vector_add(a, b, c, n):
    i = cuda.grid(1)
    if i < n:
        c[i] = a[i] + b[i]


@cuda.jit
def sgemm_tiled(a, b, c, n):
    a_tile = cuda.shared.array((TILE, TILE), float32)
    b_tile = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for t in range(0, n, TILE):
        a_tile[y, x] = a[row, t + x]
        b_tile[y, x] = b[t + y, col]
        cuda.syncthreads()
        for k in range(TILE):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    c[row, col] = total


def measure(name, instructions, run, check):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    check()
    middle = sorted(seconds)[1]
    print(f"{name:12} {middle:8.3f} s  {instructions / middle / 1e6:8.3f} million thread instructions a second")


n = 1 << 14
a, b, c = np.random.rand(n).astype(np.float32), np.random.rand(n).astype(np.float32), np.zeros(n, np.float32)
measure("vector_add", 22 * n, lambda: vector_add[n // 256, 256](a, b, c, n), lambda: np.testing.assert_array_equal(c, a + b))

n = 64
p, q, r = (np.random.rand(n, n).astype(np.float32) for _ in range(3))
measure(
    "sgemm_tiled",
    1_187_840,
    lambda: sgemm_tiled[(n // TILE, n // TILE), (TILE, TILE)](p, q, r, n),
    lambda: np.testing.assert_allclose(r, p @ q, rtol=1e-4),
)
