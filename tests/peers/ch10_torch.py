"""Chapter 10 with PyTorch: it calls the same libraries. Answers line by line, so that it takes turns with ours."""

import json
import statistics
import sys
import time

import torch

import peer

TYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


def uniform(*shape):
    return torch.rand(*shape, device="cuda") * 2 - 1


def product(name, side):
    """c = a b, as `torch.mm` calls cuBLAS."""
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    a, b = uniform(side, side).to(TYPES[name]), uniform(side, side).to(TYPES[name])
    c = torch.empty_like(a)
    # ANCHOR: product
    torch.mm(a, b, out=c)
    # ANCHOR_END: product
    tolerance = {"fp32": 1e-5, "tf32": 2e-3, "bf16": 1e-2}[name]
    expected = a[:64].double() @ b.double()
    peer.check_close(name, c[:64].double().cpu(), expected.cpu(), tolerance)
    return lambda: torch.mm(a, b, out=c)


def layer(side):
    """y = gelu(x W + b), in one call of cuBLASLt."""
    x, w, b = uniform(side, side).bfloat16(), (uniform(side, side) / side**0.5).bfloat16(), uniform(side).bfloat16()
    # ANCHOR: layer
    y = torch._addmm_activation(b, x, w.t(), use_gelu=True)
    # ANCHOR_END: layer
    z = x[:64].double() @ w.double().t() + b.double()
    expected = torch.nn.functional.gelu(z, approximate="tanh")
    peer.check_close("layer", y[:64].double().cpu(), expected.cpu(), 1e-2)
    return lambda: torch._addmm_activation(b, x, w.t(), use_gelu=True)


def seconds(work, repeats):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    work()
    begin.record()
    for _ in range(repeats):
        work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / repeats


def cost(side, calls):
    """CPU microseconds of one call that is not waited for."""
    a, b = uniform(side, side), uniform(side, side)
    c = torch.empty_like(a)
    samples = []
    for _ in range(peer.REPEATS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            torch.mm(a, b, out=c)
        samples.append((time.perf_counter() - begin) / calls)
    torch.cuda.synchronize()
    return statistics.median(samples[3:]) * 1e6


def answer(line, prepared):
    kind, *words = line.split()
    if kind == "call":
        return {"us": cost(int(words[0]), int(words[1]))}
    name, side, repeats = words[0], int(words[1]), int(words[2])
    if prepared.get("key") != (kind, name, side):
        prepared.clear()
        torch.cuda.empty_cache()
        work = layer(side) if kind == "layer" else product(name, side)
        for _ in range(3):
            work()
        prepared.update(key=(kind, name, side), work=work)
    return {"seconds": seconds(prepared["work"], repeats)}


print(json.dumps({"peer": "PyTorch", "version": torch.__version__}), flush=True)
kept = {}
for question in sys.stdin:
    print(json.dumps(answer(question, kept)), flush=True)
