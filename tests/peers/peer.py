"""What the Python peers of a chapter share: the problem, the clock and the line they print.

Each peer is a program of its own (`python3 tests/peers/ch01_cupy.py`) that does a chapter's operation with its library,
checks the result, and prints one JSON object. A chapter's cell `peers` runs those whose library is installed.
"""

import json
import statistics
import sys
import time

import numpy as np

N = 1 << 28  # floats in each vector when only the kernel is timed
N_END_TO_END = 1 << 26  # floats when the copies are timed too
SIDE = 8192  # width and height of chapter 2's plane
REPEATS = 25


def inputs(n):
    """Two float32 vectors of n numbers that are neither zero nor all alike."""
    rng = np.random.default_rng(1)
    block = rng.random(1 << 20, dtype=np.float32)
    return np.resize(block, n), np.resize(block[::-1], n)


def check(a, b, c):
    """Stops unless c is the float32 sum of a and b, bit for bit, at both ends and in the middle."""
    n = len(a)
    for part in (slice(0, 4096), slice(n // 2, n // 2 + 4096), slice(max(0, n - 4096), n)):
        if not np.array_equal(c[part], a[part] + b[part]):
            sys.exit(f"wrong sum in {part}")


def check_plane(block, thread):
    """Stops unless every element of the plane names the block of 32 x 8 threads, and the thread, that owns it."""
    height, width = block.shape
    y, x = np.mgrid[0:height, 0:width].astype(np.uint32)
    if not np.array_equal(block, y // 8 * ((width + 31) // 32) + x // 32):
        sys.exit("wrong blocks")
    if not np.array_equal(thread, y % 8 * 32 + x % 32):
        sys.exit("wrong threads")


def median_seconds(work, repeats=REPEATS):
    """Median of the wall-clock seconds of `work()`, which must wait for the device itself."""
    samples = []
    for repeat in range(repeats + 3):
        begin = time.perf_counter()
        work()
        if repeat >= 3:
            samples.append(time.perf_counter() - begin)
    return statistics.median(samples)


def median_event_seconds(record, elapsed_ms, work, repeats=REPEATS, batch=10):
    """Median seconds of one `work()` between two device events, `batch` calls a sample.

    `record()` returns an event recorded now, `elapsed_ms(begin, end)` waits for `end` and returns milliseconds.
    """
    for _ in range(3):
        work()
    samples = []
    for _ in range(repeats):
        begin = record()
        for _ in range(batch):
            work()
        samples.append(elapsed_ms(begin, record()) / 1e3 / batch)
    return statistics.median(samples)


def launch_seconds(work, synchronize, repeats=REPEATS, batch=200):
    """Median host seconds that one call of `work()` takes to enqueue, the device idle at first."""
    samples = []
    for _ in range(repeats):
        synchronize()
        begin = time.perf_counter()
        for _ in range(batch):
            work()
        samples.append((time.perf_counter() - begin) / batch)
    synchronize()
    return statistics.median(samples)


def report(peer, version, kernel_seconds, launch, end_to_end):
    """Prints the line that the chapter reads: GB/s of the kernel, µs a launch, ms with both copies."""
    print(
        json.dumps(
            {
                "peer": peer,
                "version": version,
                "gbps": 12 * N / kernel_seconds / 1e9,
                "launch_us": launch * 1e6,
                "end_to_end_ms": end_to_end * 1e3,
            }
        )
    )


def report_rate(peer, version, moved, seconds):
    """Prints the line that a chapter reads: GB/s of a kernel that moves so many bytes in so many seconds."""
    print(json.dumps({"peer": peer, "version": version, "gbps": moved / seconds / 1e9}))


def random_bytes(n):
    """n bytes in no order."""
    block = np.random.default_rng(2).integers(0, 256, 1 << 22, dtype=np.uint8)
    return np.resize(block, n)


def normal_rows(rows, columns):
    """A float32 matrix of numbers around 0."""
    block = np.random.default_rng(3).standard_normal((64, columns), dtype=np.float32)
    return np.resize(block, (rows, columns))


def check_close(what, found, expected, tolerance):
    """Stops unless `found` is within a fraction of `expected`; NaN never is."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    if not error <= tolerance:
        sys.exit(f"wrong {what}: off by {error}")


def softmax(rows):
    """The softmax of rows in float64."""
    powers = np.exp(rows.astype(np.float64) - rows.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def layer_norm(rows, epsilon=1e-5):
    """The layer norm of rows in float64, with weight 1 and bias 0."""
    rows = rows.astype(np.float64)
    distance = rows - rows.mean(axis=1, keepdims=True)
    return distance / np.sqrt((distance**2).mean(axis=1, keepdims=True) + epsilon)


def report_rates(peer, version, **rates):
    """Prints the line that chapter 4 reads: GB/s by operation, or other numbers by name."""
    print(json.dumps({"peer": peer, "version": version, **rates}))


def first_seconds(build, repeats=5):
    """Median seconds of `build(salt)`, which compiles and loads a kernel that no cache knows: each gets another number."""
    samples = []
    for repeat in range(repeats):
        salt = (time.time_ns() + repeat) & 0xFFFFFFFF
        begin = time.perf_counter()
        build(salt)
        samples.append(time.perf_counter() - begin)
    return statistics.median(samples)


def report_compiled(peer, version, compile_seconds, kernel_seconds, launch):
    """Prints the line that chapter 5 reads: ms from a string to a kernel, GB/s of the kernel, µs a launch."""
    line = {"peer": peer, "version": version, "compile_ms": compile_seconds * 1e3}
    print(json.dumps({**line, "gbps": 12 * N / kernel_seconds / 1e9, "launch_us": launch * 1e6}))
