"""Chapter 2 with Triton: a program is what CUDA calls a block; it handles a tile and knows no threads."""

import torch
import triton
import triton.language as tl

import peer

# ANCHOR: plane
@triton.jit
def plane(block, thread, width, height, WIDE: tl.constexpr, HIGH: tl.constexpr):
    x = tl.program_id(0) * WIDE + tl.arange(0, WIDE)[None, :]
    y = tl.program_id(1) * HIGH + tl.arange(0, HIGH)[:, None]
    inside = (x < width) & (y < height)
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    place = tl.arange(0, HIGH)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    tl.store(block + y * width + x, program + tl.zeros((HIGH, WIDE), tl.int32), inside)
    tl.store(thread + y * width + x, place, inside)


block, thread = (torch.empty((peer.SIDE, peer.SIDE), dtype=torch.int32, device="cuda") for _ in range(2))
grid = (triton.cdiv(peer.SIDE, 32), triton.cdiv(peer.SIDE, 8))
plane[grid](block, thread, peer.SIDE, peer.SIDE, WIDE=32, HIGH=8)
# ANCHOR_END: plane
peer.check_plane(block.cpu().numpy(), thread.cpu().numpy())


def event():
    now = torch.cuda.Event(enable_timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return begin.elapsed_time(end)


def launch():
    plane[grid](block, thread, peer.SIDE, peer.SIDE, WIDE=32, HIGH=8)


seconds = peer.median_event_seconds(event, elapsed_ms, launch)
peer.report_rate("Triton", triton.__version__, 8 * peer.SIDE**2, seconds)
