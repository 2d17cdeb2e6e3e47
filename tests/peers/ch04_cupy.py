"""Chapter 4 with CuPy: NumPy's names on the GPU; the sum asks for CUB."""

import cupy as cp
import numpy as np

import peer

ROWS, COLUMNS = 8192, 4096

a, _ = peer.inputs(peer.N)
device_a = cp.asarray(a)
device_bytes = cp.asarray(peer.random_bytes(peer.N))
x = peer.normal_rows(ROWS, COLUMNS)
rows = [cp.asarray(x) for _ in range(2)]

cp._core.set_routine_accelerators(["cub"])
cp._core.set_reduction_accelerators(["cub"])


@cp.fuse()
def power(x, largest):
    return cp.exp(x - largest)


# ANCHOR: reduce
def softmax(x):
    powers = power(x, x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def layer_norm(x):
    distance = x - x.mean(axis=1, keepdims=True)
    return distance * cp.reciprocal(cp.sqrt((distance**2).mean(axis=1, keepdims=True) + 1e-5))


total = cp.sum(device_a)
running = cp.cumsum(device_a)
counts = cp.bincount(device_bytes, minlength=256)
# ANCHOR_END: reduce

peer.check_close("sum", float(total), a.sum(dtype=np.float64), 1e-5)
peer.check_close("scan", float(running[-1]), a.sum(dtype=np.float64), 1e-4)
peer.check_close("histogram", cp.asnumpy(counts), np.bincount(cp.asnumpy(device_bytes), minlength=256), 0)
peer.check_close("softmax", cp.asnumpy(softmax(rows[0])[:64]), peer.softmax(x[:64]), 1e-5)
peer.check_close("layer norm", cp.asnumpy(layer_norm(rows[0])[:64]), peer.layer_norm(x[:64]), 1e-5)
del running


def event():
    now = cp.cuda.Event()
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cp.cuda.get_elapsed_time(begin, end)


def rate(bytes_moved, work, batch=4):
    return bytes_moved / peer.median_event_seconds(event, elapsed_ms, work, batch=batch) / 1e9


turn = iter(range(10**9))


def row():
    return rows[next(turn) % 2]  # two sets that do not fit into the cache together


peer.report_rates(
    "CuPy",
    cp.__version__,
    sum=rate(4 * peer.N, lambda: cp.sum(device_a)),
    scan=rate(8 * peer.N, lambda: cp.cumsum(device_a)),
    histogram=rate(peer.N, lambda: cp.bincount(device_bytes, minlength=256), batch=1),
    softmax=rate(8 * ROWS * COLUMNS, lambda: softmax(row())),
    layer_norm=rate(8 * ROWS * COLUMNS, lambda: layer_norm(row())),
)
