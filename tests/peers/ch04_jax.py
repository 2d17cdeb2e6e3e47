"""Chapter 4 with JAX: the compiler fuses what stands in one function."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave the GPU's memory to the others

import jax
import jax.numpy as jnp
import numpy as np

import peer

ROWS, COLUMNS = 8192, 4096

a, _ = peer.inputs(peer.N)
device_a = jax.device_put(a)
x = peer.normal_rows(ROWS, COLUMNS)
rows = [jax.device_put(x), jax.device_put(x[::-1].copy())]


# ANCHOR: reduce
@jax.jit
def total(a):
    return jnp.sum(a)


@jax.jit
def softmax(x):
    return jax.nn.softmax(x, axis=1)


@jax.jit
def layer_norm(x):
    distance = x - x.mean(axis=1, keepdims=True)
    return distance * jax.lax.rsqrt((distance**2).mean(axis=1, keepdims=True) + 1e-5)


# ANCHOR_END: reduce
peer.check_close("sum", total(device_a), a.sum(dtype=np.float64), 1e-5)
peer.check_close("softmax", softmax(rows[0])[:64], peer.softmax(x[:64]), 1e-5)
peer.check_close("layer norm", layer_norm(rows[0])[:64], peer.layer_norm(x[:64]), 1e-5)


def rate(bytes_moved, work, batch=20):
    """JAX has no events: the wall clock over a batch, with the launches in it."""

    def run():
        for turn in range(batch):
            answer = work(turn)
        answer.block_until_ready()

    return batch * bytes_moved / peer.median_seconds(run) / 1e9


# The scan and the histogram of 2^28 elements take JAX too long to be worth waiting for.
peer.report_rates(
    "JAX (wall clock)",
    jax.__version__,
    sum=rate(4 * peer.N, lambda turn: total(device_a)),
    softmax=rate(8 * ROWS * COLUMNS, lambda turn: softmax(rows[turn % 2])),
    layer_norm=rate(8 * ROWS * COLUMNS, lambda turn: layer_norm(rows[turn % 2])),
)
