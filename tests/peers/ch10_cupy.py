"""Chapter 10 with CuPy: `cupy.matmul`, `cupy.fft`, `cupyx.scipy.sparse` and `cupy.linalg` call the same libraries."""

import cupy
import cupyx.scipy.sparse
import numpy as np

import peer

SIDE = 32

rng = np.random.default_rng(1)
host_a, host_b = rng.random((2, SIDE, SIDE), dtype=np.float32)
a, b, c = cupy.asarray(host_a), cupy.asarray(host_b), cupy.empty((SIDE, SIDE), np.float32)
swings = cupy.asarray(rng.random(309, dtype=np.float32))
pixels = cupy.asarray(np.maximum(rng.random((1797, 64), dtype=np.float32) - 0.5, 0))
weights = cupy.asarray(rng.random((64, 256), dtype=np.float32))

# ANCHOR: calls
cupy.matmul(a, b, out=c)  # cuBLAS
spectrum = cupy.abs(cupy.fft.rfft(swings))  # cuFFT
features = cupyx.scipy.sparse.csr_matrix(pixels) @ weights  # cuSPARSE
equations = features.T @ features + cupy.eye(256, dtype=np.float32)
factor = cupy.linalg.cholesky(equations)  # cuSOLVER
numbers = cupy.random.uniform(size=1000, dtype=np.float32)  # cuRAND
# ANCHOR_END: calls

peer.check_close("product", c.get(), host_a.astype(np.float64) @ host_b, 1e-5)
peer.check_close("spectrum", spectrum.get(), np.abs(np.fft.rfft(swings.get().astype(np.float64))), 1e-5)
peer.check_close("sparse product", features.get(), pixels.get().astype(np.float64) @ weights.get(), 1e-5)
peer.check_close("factor", (factor @ factor.T).get(), equations.get(), 1e-4)

call = peer.launch_seconds(lambda: cupy.matmul(a, b, out=c), cupy.cuda.Device().synchronize)
peer.report_rates("CuPy", cupy.__version__, call_us=call * 1e6)
