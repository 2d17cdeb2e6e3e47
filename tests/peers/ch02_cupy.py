"""Chapter 2 with CuPy: arrays need no launch shape; a kernel of one's own does."""

import cupy

import peer

# ANCHOR: plane
plane = cupy.RawKernel(r"""
extern "C" __global__ void plane(unsigned* block, unsigned* thread, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        size_t i = (size_t)y * width + x;
        block[i] = blockIdx.y * gridDim.x + blockIdx.x;
        thread[i] = threadIdx.y * blockDim.x + threadIdx.x;
    }
}
""", "plane")
side = cupy.uint32(peer.SIDE)
block, thread = (cupy.empty((peer.SIDE, peer.SIDE), cupy.uint32) for _ in range(2))
grid = ((peer.SIDE + 31) // 32, (peer.SIDE + 7) // 8)
plane(grid, (32, 8), (block, thread, side, side))
# ANCHOR_END: plane
peer.check_plane(cupy.asnumpy(block), cupy.asnumpy(thread))


def event():
    now = cupy.cuda.Event()
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return cupy.cuda.get_elapsed_time(begin, end)


def launch():
    plane(grid, (32, 8), (block, thread, side, side))


seconds = peer.median_event_seconds(event, elapsed_ms, launch)
peer.report_rate("CuPy", cupy.__version__, 8 * peer.SIDE**2, seconds)
