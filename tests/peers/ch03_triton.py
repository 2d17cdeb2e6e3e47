"""Chapter 3 with Triton: a tile is a value, and tl.trans turns it around.

With the path of our PTX as its argument, the program times both kernels in turn, so that they meet the same clocks.
"""

import ctypes
import statistics
import sys

import torch
import triton
import triton.language as tl

import ch03_peer
import peer


# ANCHOR: transpose
@triton.jit
def transpose(a, c, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tile = tl.load(a + i[:, None] * n + j[None, :])
    tl.store(c + j[:, None] * n + i[None, :], tl.trans(tile))
# ANCHOR_END: transpose


SIDE, TILE = ch03_peer.SIDE, 64
a = ch03_peer.matrix()
device_a = torch.from_numpy(a).cuda()
device_c = torch.empty_like(device_a)


def theirs():
    transpose[(SIDE // TILE, SIDE // TILE)](device_a, device_c, SIDE, TILE=TILE)


theirs()
ch03_peer.check(a, device_c.cpu().numpy())


def event():
    now = torch.cuda.Event(enable_timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return begin.elapsed_time(end)


def our_kernel(path):
    """A function that launches transpose_06_order by the driver, on PyTorch's stream and in its context."""
    driver = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        code = getattr(driver, name)(*arguments)
        if code != 0:
            sys.exit(f"{name} returned {code}")

    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    with open(path, "rb") as file:
        call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(file.read()))
    call("cuModuleGetFunction", ctypes.byref(function), module, b"transpose_06_order")
    values = [
        ctypes.c_uint64(device_a.data_ptr()),
        ctypes.c_uint64(device_c.data_ptr()),
        ctypes.c_uint32(SIDE),
        ctypes.c_uint32(SIDE),
    ]
    arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    arguments.values = values  # they live as long as what points to them
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    tiles = SIDE // 64
    return lambda: call("cuLaunchKernel", function, tiles, tiles, 1, 16, 16, 1, 0, stream, arguments, None)


more = {}
if len(sys.argv) > 1:
    ours = our_kernel(sys.argv[1])
    device_c.zero_()
    ours()
    ch03_peer.check(a, device_c.cpu().numpy())

    def batch(work, repeats=8):
        begin = event()
        for _ in range(repeats):
            work()
        return elapsed_ms(begin, event()) / 1e3 / repeats

    for _ in range(3):
        batch(ours), batch(theirs)
    ratios, seconds = [], []
    for turn in range(51):
        if turn % 2:
            our_seconds = batch(ours)
            their_seconds = batch(theirs)
        else:
            their_seconds = batch(theirs)
            our_seconds = batch(ours)
        ratios.append(their_seconds / our_seconds)
        seconds.append(their_seconds)
    fifths = statistics.quantiles(ratios, n=5)
    more = {
        "ours_over_theirs": statistics.median(ratios),
        "low": fifths[0],
        "high": fifths[-1],
        "pairs": len(ratios),
    }
    seconds = statistics.median(seconds)
else:
    seconds = peer.median_event_seconds(event, elapsed_ms, theirs)
ch03_peer.report("Triton", triton.__version__, seconds, **more)
