"""Chapter 7 with PyTorch: streams and pinned tensors, and a chain of operations captured into a CUDA graph.

PyTorch has no kernel of ours: the work on a chunk is as many sines, one after the other, as take as long as the copy.
"""

import torch

import ch07_peer as problem
import peer

host_in = torch.from_numpy(problem.numbers()).pin_memory()
host_out = torch.empty(problem.N, dtype=torch.float32).pin_memory()
device_in, device_out = torch.empty(problem.N, device="cuda"), torch.empty(problem.N, device="cuda")
streams = [torch.cuda.Stream() for _ in range(problem.STREAMS)]


# ANCHOR: overlap
def there_and_back(chunks, rounds):
    parts = zip(*(tensor.chunk(chunks) for tensor in (host_in, device_in, device_out, host_out)))
    for number, (come_from, input, output, go_to) in enumerate(parts):
        with torch.cuda.stream(streams[number % len(streams)]):
            input.copy_(come_from, non_blocking=True)
            torch.sin(input, out=output)
            for _ in range(rounds - 1):
                torch.sin(output, out=output)
            go_to.copy_(output, non_blocking=True)
    torch.cuda.synchronize()


# ANCHOR_END: overlap
def copy():
    device_in.copy_(host_in, non_blocking=True)
    torch.cuda.synchronize()


def rounds_of(chunks):
    """How many sines of all chunks take as long as the copy."""
    parts = device_out.chunk(chunks)

    def sines():
        for part in parts:
            for _ in range(8):
                torch.sin(part, out=part)
        torch.cuda.synchronize()

    return max(1, round(peer.median_seconds(copy, repeats=7) / (peer.median_seconds(sines, repeats=7) / 8)))


rounds = rounds_of(problem.CHUNKS)
serial_rounds = rounds_of(1)
serial = peer.median_seconds(lambda: there_and_back(1, serial_rounds), repeats=15)
overlapped = peer.median_seconds(lambda: there_and_back(problem.CHUNKS, rounds), repeats=15)
expected = host_in[:4096].double()
for _ in range(rounds):
    expected = expected.sin()
if not torch.allclose(host_out[:4096].double(), expected, rtol=1e-4):
    raise SystemExit("wrong results")

# ANCHOR: graph
numbers = torch.zeros(problem.SMALL, device="cuda")


def chain():
    for _ in range(problem.CHAIN):
        numbers.add_(1)


chain()  # by hand
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    chain()
graph.replay()
# ANCHOR_END: graph
if int(numbers[0]) != 2 * problem.CHAIN:
    raise SystemExit("wrong result of the chain")
by_hand = problem.seconds_each(chain, torch.cuda.synchronize, batch=3)
graph_time = problem.seconds_each(graph.replay, torch.cuda.synchronize)
problem.report("PyTorch", torch.__version__, serial, overlapped, by_hand, graph_time)
