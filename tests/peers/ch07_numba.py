"""Chapter 7 with Numba: streams and pinned arrays. The chain is launched by hand."""

import numpy as np

if not hasattr(np, "row_stack"):  # Numba 0.68 still asks for a name that NumPy 2.5 has dropped
    np.row_stack = np.vstack

import numba
from numba import cuda

import ch07_peer as problem
import peer


@cuda.jit(fastmath=True)
def work(a, c, rounds):
    i = cuda.grid(1)
    if i < a.size:
        x = a[i]
        for round in range(rounds):
            x = x * np.float32(0.999) + np.float32(0.001) * np.float32(round & 3)
        c[i] = x


@cuda.jit
def step(c):
    i = cuda.threadIdx.x
    if i < c.size:
        c[i] = 3 * c[i] + 1


host_in, host_out = (cuda.pinned_array(problem.N, np.float32) for _ in range(2))
host_in[:] = problem.numbers()
device_in, device_out = (cuda.device_array(problem.N, np.float32) for _ in range(2))
streams = [cuda.stream() for _ in range(problem.STREAMS)]


# ANCHOR: overlap
def there_and_back(chunks, rounds):
    length = problem.N // chunks
    for chunk in range(chunks):
        part = slice(chunk * length, (chunk + 1) * length)
        input, output = device_in[part], device_out[part]
        stream = streams[chunk % len(streams)]
        input.copy_to_device(host_in[part], stream=stream)
        work[(length + 255) // 256, 256, stream](input, output, rounds)
        output.copy_to_host(host_out[part], stream=stream)
    cuda.synchronize()


# ANCHOR_END: overlap
def copy():
    device_in.copy_to_device(host_in, stream=streams[0])
    cuda.synchronize()


def kernel(rounds):
    work[problem.N // 256, 256, streams[0]](device_in, device_out, rounds)
    cuda.synchronize()


rounds = problem.rounds_for(copy, kernel)
serial = peer.median_seconds(lambda: there_and_back(1, rounds), repeats=15)
host_out[:] = -1
overlapped = peer.median_seconds(lambda: there_and_back(problem.CHUNKS, rounds), repeats=15)
problem.check_work(host_out, rounds, host_in)

numbers = cuda.to_device(np.zeros(problem.SMALL, np.uint32))
launcher = step[1, problem.SMALL, streams[0]]


def chain():
    for _ in range(problem.CHAIN):
        launcher(numbers)


by_hand = problem.seconds_each(chain, cuda.synchronize, batch=1)
problem.report("Numba", numba.__version__, serial, overlapped, by_hand, None)
