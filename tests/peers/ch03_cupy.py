"""Chapter 3 with CuPy: a transposed view, and a copy that makes it real."""

import cupy as cp

import ch03_peer
import peer

a = ch03_peer.matrix()
device_a = cp.asarray(a)
# ANCHOR: transpose
device_c = cp.ascontiguousarray(device_a.T)  # .T only exchanges the strides; the copy moves the data
# ANCHOR_END: transpose
ch03_peer.check(a, cp.asnumpy(device_c))


def event():
    now = cp.cuda.Event()
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cp.cuda.get_elapsed_time(begin, end)


seconds = peer.median_event_seconds(event, elapsed_ms, lambda: cp.copyto(device_c, device_a.T))
ch03_peer.report("CuPy", cp.__version__, seconds)
