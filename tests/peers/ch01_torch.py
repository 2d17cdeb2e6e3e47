"""Chapter 1 with PyTorch: the sum of two tensors on the GPU."""

import torch

import peer

# ANCHOR: add
a, b = peer.inputs(peer.N)
device_a, device_b = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()  # allocate, copy to the device
device_c = device_a + device_b  # allocate from PyTorch's cache, launch
c = device_c.cpu().numpy()  # wait, copy back
# ANCHOR_END: add
peer.check(a, b, c)


def event():
    now = torch.cuda.Event(enable_timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return begin.elapsed_time(end)


kernel = peer.median_event_seconds(event, elapsed_ms, lambda: torch.add(device_a, device_b, out=device_c))
small = [torch.ones(1024, device="cuda") for _ in range(3)]
launch = peer.launch_seconds(lambda: torch.add(small[0], small[1], out=small[2]), torch.cuda.synchronize)
del device_a, device_b, device_c
host_a, host_b = torch.from_numpy(a[: peer.N_END_TO_END]), torch.from_numpy(b[: peer.N_END_TO_END])
end_to_end = peer.median_seconds(lambda: (host_a.cuda() + host_b.cuda()).cpu(), repeats=7)
peer.report("PyTorch", torch.__version__, kernel, launch, end_to_end)
