"""Chapter 3 with JAX: the compiler writes the transpose."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others use the device too

import jax
import numpy as np

import ch03_peer
import peer

if jax.default_backend() != "gpu":
    raise SystemExit("JAX sees no GPU")

a = ch03_peer.matrix()
device_a = jax.device_put(a)
# ANCHOR: transpose
transpose = jax.jit(lambda a: a.T)  # under jit, a transpose moves the data
# ANCHOR_END: transpose
ch03_peer.check(a, np.asarray(transpose(device_a)))

BATCH = 20


def batch():
    """JAX has no events: enough calls in a row that the wait at their end does not count."""
    results = [transpose(device_a) for _ in range(BATCH)]
    jax.block_until_ready(results)


ch03_peer.report("JAX", jax.__version__, peer.median_seconds(batch) / BATCH)
