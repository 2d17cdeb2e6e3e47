"""Chapter 7 with PyCUDA: streams and page-locked arrays. The chain is launched by hand."""

import numpy as np
import pycuda
import pycuda.autoinit
import pycuda.driver as driver
from pycuda.compiler import SourceModule

import ch07_peer as problem
import peer

module = SourceModule(
    problem.WORK + 'extern "C" __global__ void step(unsigned* c, unsigned n) { if (threadIdx.x < n) c[threadIdx.x] = 3 * c[threadIdx.x] + 1; }',
    no_extern_c=True,
)
work, step = module.get_function("work"), module.get_function("step")
work.prepare("PPQI")
step.prepare("PI")

host_in, host_out = (driver.pagelocked_empty(problem.N, np.float32) for _ in range(2))
host_in[:] = problem.numbers()
device_in, device_out = (driver.mem_alloc(4 * problem.N) for _ in range(2))
streams = [driver.Stream() for _ in range(problem.STREAMS)]


# ANCHOR: overlap
def there_and_back(chunks, rounds):
    length = problem.N // chunks
    for chunk in range(chunks):
        part = slice(chunk * length, (chunk + 1) * length)
        input, output = int(device_in) + 4 * part.start, int(device_out) + 4 * part.start
        stream = streams[chunk % len(streams)]
        driver.memcpy_htod_async(input, host_in[part], stream)
        work.prepared_async_call(((length + 255) // 256, 1), (256, 1, 1), stream, input, output, length, rounds)
        driver.memcpy_dtoh_async(host_out[part], output, stream)
    driver.Context.synchronize()


# ANCHOR_END: overlap
def copy():
    driver.memcpy_htod_async(device_in, host_in, streams[0])
    driver.Context.synchronize()


def kernel(rounds):
    work.prepared_async_call((problem.N // 256, 1), (256, 1, 1), streams[0], device_in, device_out, problem.N, rounds)
    driver.Context.synchronize()


rounds = problem.rounds_for(copy, kernel)
serial = peer.median_seconds(lambda: there_and_back(1, rounds), repeats=15)
host_out[:] = -1
overlapped = peer.median_seconds(lambda: there_and_back(problem.CHUNKS, rounds), repeats=15)
problem.check_work(host_out, rounds, host_in)

numbers = driver.to_device(np.zeros(problem.SMALL, np.uint32))


def chain():
    for _ in range(problem.CHAIN):
        step.prepared_async_call((1, 1), (problem.SMALL, 1, 1), streams[0], numbers, problem.SMALL)


by_hand = problem.seconds_each(chain, driver.Context.synchronize, batch=3)
problem.report("PyCUDA", pycuda.VERSION_TEXT, serial, overlapped, by_hand, None)
