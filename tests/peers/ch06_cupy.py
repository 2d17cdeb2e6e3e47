"""Chapter 6 with CuPy: a memory pool that takes managed memory, and NumPy's view of the same bytes."""

import ctypes

import cupy as cp
import numpy as np

import ch06_peer
import peer

# ANCHOR: add
cp.cuda.set_allocator(cp.cuda.MemoryPool(cp.cuda.malloc_managed).malloc)
a = cp.empty(ch06_peer.N, dtype=cp.float32)
b, c = cp.empty_like(a), cp.empty_like(a)


def on_cpu(array):
    """The same memory as a NumPy array: an address is an address."""
    floats = (ctypes.c_float * array.size).from_address(array.data.ptr)
    return np.frombuffer(floats, dtype=np.float32)


host_a, host_b, host_c = on_cpu(a), on_cpu(b), on_cpu(c)
ch06_peer.fill(host_a, host_b)  # written in place by the CPU
cp.add(a, b, out=c)
cp.cuda.Stream.null.synchronize()  # nothing else makes the CPU wait
peer.check(host_a, host_b, host_c)
# ANCHOR_END: add


def add():
    cp.add(a, b, out=c)
    cp.cuda.Stream.null.synchronize()


ch06_peer.report("CuPy", cp.__version__, *ch06_peer.cold_and_resident(add, (host_a, host_b, host_c)))
