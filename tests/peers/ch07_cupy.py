"""Chapter 7 with CuPy: streams and pinned memory, and a chain of kernels captured into a graph."""

import cupy as cp
import numpy as np

import ch07_peer as problem
import peer

work = cp.RawKernel(problem.WORK, "work")
step = cp.RawKernel('extern "C" __global__ void step(unsigned* c, unsigned n) { if (threadIdx.x < n) c[threadIdx.x] = 3 * c[threadIdx.x] + 1; }', "step")


def pinned(n):
    return np.frombuffer(cp.cuda.alloc_pinned_memory(4 * n), np.float32, n)


host_in, host_out = pinned(problem.N), pinned(problem.N)
host_in[:] = problem.numbers()
device_in, device_out = cp.empty(problem.N, cp.float32), cp.empty(problem.N, cp.float32)
streams = [cp.cuda.Stream(non_blocking=True) for _ in range(problem.STREAMS)]


# ANCHOR: overlap
def there_and_back(chunks, rounds):
    length = problem.N // chunks
    for chunk in range(chunks):
        part = slice(chunk * length, (chunk + 1) * length)
        with streams[chunk % len(streams)]:  # what is enqueued in here goes to this stream
            device_in[part].set(host_in[part])
            work(((length + 255) // 256,), (256,), (device_in[part], device_out[part], np.uint64(length), np.uint32(rounds)))
            device_out[part].get(out=host_out[part], blocking=False)
    cp.cuda.Device().synchronize()


# ANCHOR_END: overlap
def copy():
    device_in.set(host_in)
    cp.cuda.Device().synchronize()


def kernel(rounds):
    work((problem.N // 256,), (256,), (device_in, device_out, np.uint64(problem.N), np.uint32(rounds)))
    cp.cuda.Device().synchronize()


rounds = problem.rounds_for(copy, kernel)
serial = peer.median_seconds(lambda: there_and_back(1, rounds), repeats=15)
host_out[:] = -1
overlapped = peer.median_seconds(lambda: there_and_back(problem.CHUNKS, rounds), repeats=15)
problem.check_work(host_out, rounds, host_in)

# ANCHOR: graph
stream = streams[0]
numbers = cp.zeros(problem.SMALL, cp.uint32)
cp.cuda.Device().synchronize()


def chain():
    for _ in range(problem.CHAIN):
        step((1,), (problem.SMALL,), (numbers, np.uint32(problem.SMALL)))


with stream:
    chain()  # by hand
    stream.begin_capture()
    chain()
    graph = stream.end_capture()
    graph.launch()
# ANCHOR_END: graph
stream.synchronize()
expected = 0
for _ in range(2 * problem.CHAIN):
    expected = (3 * expected + 1) % 2**32
if int(numbers[0]) != expected:
    raise SystemExit("wrong result of the chain")
with stream:
    by_hand = problem.seconds_each(chain, stream.synchronize, batch=3)
    graph_time = problem.seconds_each(graph.launch, stream.synchronize)
problem.report("CuPy", cp.__version__, serial, overlapped, by_hand, graph_time)
