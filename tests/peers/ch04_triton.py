"""Chapter 4 with Triton and torch.compile, in turn with this chapter's kernels in one process.

`python3 ch04_triton.py FOLDER`: the folder holds the PTX of our two kernels (kernels/ptx in the repository). CuPy loads
them by the driver.
"""

import statistics
import sys

import cupy as cp
import numpy as np
import torch
import triton
import triton.language as tl

import peer

ROWS, COLUMNS = 8192, 4096
PAIRS = 31
BATCH = 8  # launches in a sample
FOLDER = sys.argv[1] if len(sys.argv) > 1 else "kernels/ptx"


# ANCHOR: reduce
@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    v = tl.load(x + row * columns + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + offsets, powers / tl.sum(powers, axis=0), mask=mask)


# ANCHOR_END: reduce
@triton.jit
def layer_norm_kernel(x, weight, bias, y, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    v = tl.load(x + row * columns + offsets, mask=mask, other=0.0)
    mean = tl.sum(v, axis=0) / columns
    distance = tl.where(mask, v - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(distance * distance, axis=0) / columns + epsilon)
    w = tl.load(weight + offsets, mask=mask)
    b = tl.load(bias + offsets, mask=mask)
    tl.store(y + row * columns + offsets, distance * scale * w + b, mask=mask)


host = peer.normal_rows(ROWS, COLUMNS)
x = [torch.from_numpy(host).cuda(), torch.from_numpy(host[::-1].copy()).cuda()]
y = [torch.empty_like(rows) for rows in x]
weight, bias = torch.ones(COLUMNS, device="cuda"), torch.zeros(COLUMNS, device="cuda")
epsilon = 1e-5

softmax_ours = cp.RawModule(path=f"{FOLDER}/softmax_03_registers.ptx").get_function("softmax_03_registers")
layer_norm_ours = cp.RawModule(path=f"{FOLDER}/layer_norm_03_registers.ptx").get_function("layer_norm_03_registers")
stream = cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)


def pointer(tensor):
    return np.uint64(tensor.data_ptr())


def our_softmax(turn):
    arguments = (pointer(x[turn % 2]), pointer(y[turn % 2]), np.uint32(ROWS), np.uint32(COLUMNS))
    with stream:
        softmax_ours((ROWS,), (128,), arguments)


def our_layer_norm(turn):
    pointers = (pointer(x[turn % 2]), pointer(weight), pointer(bias), pointer(y[turn % 2]))
    with stream:
        layer_norm_ours((ROWS,), (512,), (*pointers, np.uint32(ROWS), np.uint32(COLUMNS), np.float32(epsilon)))


def triton_softmax(warps):
    return lambda turn: softmax_kernel[(ROWS,)](x[turn % 2], y[turn % 2], COLUMNS, BLOCK=4096, num_warps=warps)


def triton_layer_norm(warps):
    return lambda turn: layer_norm_kernel[(ROWS,)](
        x[turn % 2], weight, bias, y[turn % 2], COLUMNS, epsilon, BLOCK=4096, num_warps=warps
    )


compiled_softmax = torch.compile(lambda x: torch.softmax(x, 1))
compiled_layer_norm = torch.compile(
    lambda x: torch.nn.functional.layer_norm(x, (COLUMNS,), weight, bias, epsilon)
)


def seconds(work):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for turn in range(BATCH):
        work(turn)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / BATCH


def alternate(ours, theirs):
    """Median of their time over ours, pair by pair, and both medians."""
    for work in (ours, theirs, ours, theirs):
        seconds(work)
    pairs = []
    for pair in range(PAIRS):
        if pair % 2:
            first = seconds(ours)
            pairs.append((first, seconds(theirs)))
        else:
            first = seconds(theirs)
            pairs.append((seconds(ours), first))
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    return ratio, statistics.median(ours for ours, _ in pairs), statistics.median(theirs for _, theirs in pairs)


def check(what, work, expected):
    y[0].fill_(float("nan"))
    answer = work(0)
    answer = answer if isinstance(answer, torch.Tensor) else y[0]
    torch.cuda.synchronize()
    peer.check_close(what, answer[:64].cpu(), expected(host[:64]), 1e-5)


rates = {}
for name, ours, tuned, compiled, expected in [
    ("softmax", our_softmax, triton_softmax, lambda turn: compiled_softmax(x[turn % 2]), peer.softmax),
    ("layer_norm", our_layer_norm, triton_layer_norm, lambda turn: compiled_layer_norm(x[turn % 2]), peer.layer_norm),
]:
    for work in (ours, tuned(8), compiled):
        check(name, work, expected)
    # Triton's best number of warps, as its autotuner would find it.
    candidates = [tuned(warps) for warps in (4, 8, 16)]
    best = min(candidates, key=lambda work: min(seconds(work) for _ in range(5)))
    bytes_moved = 8 * ROWS * COLUMNS
    ratio, our_time, their_time = alternate(ours, best)
    rates[f"{name}_over_triton"] = ratio
    rates[f"{name}_ours"] = bytes_moved / our_time / 1e9
    rates[f"{name}_triton"] = bytes_moved / their_time / 1e9
    ratio, _, their_time = alternate(ours, compiled)
    rates[f"{name}_over_compile"] = ratio
    rates[f"{name}_compile"] = bytes_moved / their_time / 1e9

peer.report_rates(
    "Triton", triton.__version__, triton_version=triton.__version__, compile_version=torch.__version__, **rates
)
