"""Chapter 5 with cuda.core, NVIDIA's own Python: Program hands the string to NVRTC and makes a cubin of it."""

try:
    import cuda.core as core
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
except ImportError:  # before version 1
    import cuda.core.experimental as core
    from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch

import cupy as cp  # memory and events; cuda.core has the kernel
import numpy as np

import peer

SOURCE = """
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
"""
device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch="sm_%d%d" % tuple(device.compute_capability)[:2])


# ANCHOR: add
def compiled_kernel(source):
    return Program(source, code_type="c++", options=options).compile("cubin").get_kernel("vector_add")


kernel = compiled_kernel(SOURCE)
a, b = peer.inputs(peer.N)
device_a, device_b = cp.asarray(a), cp.asarray(b)
device_c = cp.empty_like(device_a)
cp.cuda.Device().synchronize()
pointers = [np.uintp(array.data.ptr) for array in (device_a, device_b, device_c)]
launch(stream, LaunchConfig(grid=(len(a) + 255) // 256, block=256), kernel, *pointers, np.uint64(len(a)))
stream.sync()
c = cp.asnumpy(device_c)
# ANCHOR_END: add
peer.check(a, b, c)
outside = cp.cuda.ExternalStream(int(stream.handle))


def event():
    now = cp.cuda.Event()
    now.record(outside)
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cp.cuda.get_elapsed_time(begin, end)


def build(salt):
    kernel = compiled_kernel(f"__device__ unsigned salt = {salt}u;\n{SOURCE}")
    launch(stream, LaunchConfig(grid=1, block=32), kernel, *pointers, np.uint64(1))
    stream.sync()


large, few = LaunchConfig(grid=peer.N // 256, block=256), LaunchConfig(grid=4, block=256)
first = peer.first_seconds(build)
time = peer.median_event_seconds(
    event, elapsed_ms, lambda: launch(stream, large, kernel, *pointers, np.uint64(peer.N))
)
enqueue = peer.launch_seconds(lambda: launch(stream, few, kernel, *pointers, np.uint64(1024)), stream.sync)
peer.report_compiled("cuda.core", getattr(core, "__version__", ""), first, time, enqueue)
