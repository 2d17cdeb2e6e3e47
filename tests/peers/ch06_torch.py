"""Chapter 6 with PyTorch, which has no managed tensors: explicit copies, from pageable and from pinned memory."""

import torch

import ch06_peer
import peer

# ANCHOR: add
a, b = (torch.from_numpy(vector) for vector in peer.inputs(ch06_peer.N))


def trip(a, b, c):
    """Copies two vectors in and their sum out. From pinned memory the copies need not wait for each other."""
    c.copy_(a.to("cuda", non_blocking=True) + b.to("cuda", non_blocking=True), non_blocking=True)
    torch.cuda.synchronize()


pageable = (a, b, torch.empty_like(a))
pinned = (a.pin_memory(), b.pin_memory(), torch.empty_like(a).pin_memory())
# ANCHOR_END: add
for vectors in (pageable, pinned):
    trip(*vectors)
    peer.check(*(vector.numpy() for vector in vectors))

ch06_peer.report(
    "PyTorch",
    torch.__version__,
    pageable=peer.median_seconds(lambda: trip(*pageable), repeats=7),
    pinned=peer.median_seconds(lambda: trip(*pinned)),
)
