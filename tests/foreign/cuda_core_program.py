"""A cuda.core program that compiles a string to PTX with NVRTC and launches it."""

import numpy
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = """
template<typename T>
__global__ void saxpy(const T a, const T* x, const T* y, T* out, size_t n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = a * x[i] + y[i];
    }
}
"""

device = Device()
device.set_current()
stream = device.create_stream()
capability = "".join(str(part) for part in device.compute_capability)
print(device.name, ".".join(capability))

program = Program(SOURCE, "c++", ProgramOptions(std="c++17", arch=f"compute_{capability}", fma=False))
names = ("saxpy<float>", "saxpy<double>")
module = program.compile("ptx", name_expressions=names)

random = numpy.random.default_rng(1)
pinned = LegacyPinnedMemoryResource()
for name, kind in zip(names, (numpy.float32, numpy.float64)):
    kernel = module.get_kernel(name)
    assert kernel.attributes.num_regs > 0
    for n in [1, 31, 33, 1000, 100_000]:
        size = n * kind().itemsize
        host = [pinned.allocate(size) for _ in range(3)]
        x, y, out = (numpy.from_dlpack(buffer).view(kind) for buffer in host)
        x[:], y[:] = random.random((2, n), dtype=kind)
        a = kind(2.5)
        buffers = [device.memory_resource.allocate(size, stream=stream) for _ in range(3)]
        for buffer, values in zip(buffers, host[:2]):
            values.copy_to(buffer, stream=stream)
        launch(stream, LaunchConfig(grid=8, block=256), kernel, a, *buffers, numpy.uint64(n))
        buffers[2].copy_to(host[2], stream=stream)
        stream.sync()
        assert numpy.array_equal(out, a * x + y), (name, n)
        for buffer in buffers + host:
            buffer.close(stream)
print("cuda.core ok")
