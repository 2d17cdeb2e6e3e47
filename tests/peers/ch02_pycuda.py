"""Chapter 2 with PyCUDA: grid and block are tuples, the kernel is the same CUDA C++."""

import numpy as np
import pycuda
import pycuda.autoinit
import pycuda.driver as driver
from pycuda.compiler import SourceModule

import peer

# ANCHOR: plane
module = SourceModule("""
__global__ void plane(unsigned* block, unsigned* thread, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        size_t i = (size_t)y * width + x;
        block[i] = blockIdx.y * gridDim.x + blockIdx.x;
        thread[i] = threadIdx.y * blockDim.x + threadIdx.x;
    }
}
""")
plane = module.get_function("plane")
side = np.uint32(peer.SIDE)
block, thread = (driver.mem_alloc(4 * peer.SIDE**2) for _ in range(2))
grid = ((peer.SIDE + 31) // 32, (peer.SIDE + 7) // 8)
plane(block, thread, side, side, grid=grid, block=(32, 8, 1))
# ANCHOR_END: plane
host = np.empty((2, peer.SIDE, peer.SIDE), np.uint32)
driver.memcpy_dtoh(host[0], block)
driver.memcpy_dtoh(host[1], thread)
peer.check_plane(host[0], host[1])

plane.prepare("PPII")


def event():
    now = driver.Event()
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return begin.time_till(end)


def launch():
    plane.prepared_call(grid, (32, 8, 1), block, thread, side, side)


peer.report_rate("PyCUDA", pycuda.VERSION_TEXT, 8 * peer.SIDE**2, peer.median_event_seconds(event, elapsed_ms, launch))
