"""Chapter 3 with PyTorch: a transposed view, and a copy that makes it real."""

import torch

import ch03_peer
import peer

a = ch03_peer.matrix()
device_a = torch.from_numpy(a).cuda()
# ANCHOR: transpose
device_c = device_a.t().contiguous()  # .t() only exchanges the strides; .contiguous() moves the data
# ANCHOR_END: transpose
ch03_peer.check(a, device_c.cpu().numpy())


def event():
    now = torch.cuda.Event(enable_timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return begin.elapsed_time(end)


seconds = peer.median_event_seconds(event, elapsed_ms, lambda: device_c.copy_(device_a.t()))
ch03_peer.report("PyTorch", torch.__version__, seconds)
