"""A PyCUDA program that loads PTX: python3 pycuda_program.py vector_add_01_scalar.ptx"""

import sys

import numpy
import pycuda.autoinit
import pycuda.driver as cuda

device = pycuda.autoinit.device
print(device.name(), "%d.%d" % device.compute_capability())

module = cuda.module_from_file(sys.argv[1])
add = module.get_function("vector_add_01_scalar")
print(add.num_regs > 0, add.shared_size_bytes, add.max_threads_per_block)

# Copies that it makes by itself.
random = numpy.random.default_rng(1)
for n in [1, 31, 33, 1000, 100_000]:
    a, b = random.random((2, n), dtype=numpy.float32)
    c = numpy.zeros_like(a)
    grid = ((n + 255) // 256, 1)
    add(cuda.In(a), cuda.In(b), cuda.Out(c), numpy.uint64(n), block=(256, 1, 1), grid=grid)
    assert numpy.array_equal(c, a + b), n

# Everything by hand, and in order of a stream: pinned memory, a prepared call, events.
a, b, c = (cuda.pagelocked_zeros(n, numpy.float32) for _ in range(3))
a[:], b[:] = random.random((2, n), dtype=numpy.float32)
stream = cuda.Stream()
start, end = cuda.Event(), cuda.Event()
pool = pycuda.tools.DeviceMemoryPool()
buffers = [pool.allocate(a.nbytes) for _ in range(3)]
add.prepare("PPPQ")
start.record(stream)
cuda.memcpy_htod_async(buffers[0], a, stream)
cuda.memcpy_htod_async(buffers[1], b, stream)
add.prepared_async_call(grid, (256, 1, 1), stream, *buffers, n)
cuda.memcpy_dtoh_async(c, buffers[2], stream)
end.record(stream)
end.synchronize()
assert end.time_since(start) >= 0
assert numpy.array_equal(c, a + b)
for buffer in buffers:
    buffer.free()
pool.stop_holding()

# Managed memory, which the kernel and this program share.
a, b, c = (cuda.managed_zeros(n, numpy.float32, mem_flags=cuda.mem_attach_flags.GLOBAL) for _ in range(3))
a[:], b[:] = random.random((2, n), dtype=numpy.float32)
add(a, b, c, numpy.uint64(n), block=(256, 1, 1), grid=grid)
cuda.Context.synchronize()
assert numpy.array_equal(c, a + b)

free, total = cuda.mem_get_info()
assert 0 < free <= total
print("pycuda ok")
