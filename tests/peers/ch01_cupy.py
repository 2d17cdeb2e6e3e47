"""Chapter 1 with CuPy: an array API over a kernel that CuPy writes and compiles for you."""

import cupy as cp

import peer

# ANCHOR: add
a, b = peer.inputs(peer.N)
device_a, device_b = cp.asarray(a), cp.asarray(b)  # allocate, copy to the device
device_c = device_a + device_b  # allocate, compile on first use, launch
c = cp.asnumpy(device_c)  # wait, copy back
# ANCHOR_END: add
peer.check(a, b, c)


def event():
    now = cp.cuda.Event()
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cp.cuda.get_elapsed_time(begin, end)


kernel = peer.median_event_seconds(event, elapsed_ms, lambda: cp.add(device_a, device_b, out=device_c))
small = [cp.ones(1024, cp.float32) for _ in range(3)]
launch = peer.launch_seconds(lambda: cp.add(small[0], small[1], out=small[2]), cp.cuda.Device().synchronize)
del device_a, device_b, device_c
host_a, host_b = a[: peer.N_END_TO_END], b[: peer.N_END_TO_END]
end_to_end = peer.median_seconds(lambda: cp.asnumpy(cp.asarray(host_a) + cp.asarray(host_b)), repeats=7)
peer.report("CuPy", cp.__version__, kernel, launch, end_to_end)
