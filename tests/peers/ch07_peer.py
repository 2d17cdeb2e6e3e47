"""What the Python peers of chapter 7 share: how much is copied and computed, in which chunks, and the line they print."""

import json

import numpy as np

import peer

N = 1 << 26  # floats that go there and back: 256 MiB
STREAMS = 4
CHUNKS = 32
CHAIN = 2000  # kernels in a chain
SMALL = 32  # numbers that each of them works on

# What is allocated and freed, one after the other; the numbers are MiB. A letter that comes again is freed.
SEQUENCE = [("a", 64), ("b", 64), ("c", 64), ("a", 0), ("b", 0), ("d", 128), ("c", 0), ("e", 64), ("d", 0), ("e", 0)]

WORK = """
extern "C" __global__ void work(const float* a, float* c, unsigned long long n, unsigned rounds) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    for (unsigned round = 0; round < rounds; ++round) x = fmaf(x, 0.999f, 0.001f * (float)(round & 3));
    c[i] = x;
}
"""


def numbers():
    """Numbers between 0 and 1, not all alike."""
    return np.resize(np.random.default_rng(1).random(1 << 20, dtype=np.float32), N)


def check_work(found, rounds, numbers):
    """Stops unless a few thousand results are right to float32's precision."""
    places = np.arange(0, N, 16381)
    x = numbers[places].astype(np.float64)
    for round in range(rounds):
        x = x * np.float64(np.float32(0.999)) + np.float64(np.float32(0.001) * np.float32(round & 3))
    if not np.allclose(found[places], x, rtol=1e-4, atol=1e-6):
        raise SystemExit("wrong results")


def rounds_for(copy, kernel):
    """Rounds with which `kernel(rounds)` takes as long as `copy()`; both wait for the device."""
    copy_seconds = peer.median_seconds(copy, repeats=7)
    few, many = (peer.median_seconds(lambda: kernel(rounds), repeats=7) for rounds in (256, 1024))
    return max(64, int(256 + (copy_seconds - few) / ((many - few) / 768)))


def seconds_each(work, synchronize, batch=10):
    """Median seconds of one `work()` of `batch` that follow each other, until the device is done."""

    def some():
        for _ in range(batch):
            work()
        synchronize()

    return peer.median_seconds(some, repeats=15) / batch


def report(name, version, serial, overlapped, by_hand, graph):
    """Prints the line that the chapter reads; a time that a library cannot give is None."""
    print(
        json.dumps(
            {
                "peer": name,
                "version": version,
                "serial_ms": serial * 1e3,
                "overlapped_ms": overlapped * 1e3,
                "gain": serial / overlapped,
                "by_hand_us": by_hand and by_hand * 1e6 / CHAIN,
                "graph_us": graph and graph * 1e6 / CHAIN,
            }
        )
    )
