"""How much memory PyTorch holds while tensors come and go: what the tensors need, what its cache keeps, and what is left
when the tensors' owners form cycles that only Python's garbage collector takes apart."""

import gc
import json

import torch

import ch07_peer as problem

MIB = 1 << 20


class Owner:
    """Holds a tensor. With `cycle` it holds itself, too, and so its reference count never becomes zero."""

    def __init__(self, tensor, cycle):
        self.tensor = tensor
        self.itself = self if cycle else None


def run(cycle, give_back):
    """MiB of the tensors and of PyTorch's cache after each step; the last step is `give_back`."""
    gc.collect()
    torch.cuda.empty_cache()
    base = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    owners, allocated, reserved = {}, [], []

    def look():
        allocated.append((torch.cuda.memory_allocated() - base[0]) / MIB)
        reserved.append((torch.cuda.memory_reserved() - base[1]) / MIB)

    # ANCHOR: memory
    for name, mebibytes in problem.SEQUENCE:
        if name in owners:
            del owners[name]
        else:
            tensor = torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")
            owners[name] = Owner(tensor, cycle)
            del tensor
        look()
    give_back()
    look()
    # ANCHOR_END: memory
    return allocated, reserved


torch.cuda.init()
gc.disable()  # else it runs when it likes
allocated, reserved = run(False, torch.cuda.empty_cache)
cycles, _ = run(True, gc.collect)
print(json.dumps({"version": torch.__version__, "allocated": allocated, "reserved": reserved, "cycles": cycles}))
