"""What chapter 6's Python peers share: vectors that the CPU takes back before each run, and the line they print."""

import json
import statistics
import time

import numpy as np

import peer

N = peer.N_END_TO_END  # floats in each vector
PAGE = 1024  # floats in a page of 4096 bytes


def fill(a, b):
    """Writes the inputs into two arrays, in place."""
    a[:], b[:] = peer.inputs(len(a))


def take_back(*vectors):
    """Touches every page of managed vectors from the CPU, so that they are where the CPU is."""
    for vector in vectors:
        vector[::PAGE] += np.float32(0)


def cold_and_resident(add, vectors, repeats=peer.REPEATS):
    """Median wall-clock seconds of `add()`, which must wait for the device: after the CPU's turn, and once more."""
    cold, resident = [], []
    for repeat in range(repeats + 3):
        take_back(*vectors)
        begin = time.perf_counter()
        add()
        middle = time.perf_counter()
        add()
        end = time.perf_counter()
        if repeat >= 3:
            cold.append(middle - begin)
            resident.append(end - middle)
    return statistics.median(cold), statistics.median(resident)


def report(name, version, cold=None, resident=None, pageable=None, pinned=None):
    """Prints the line that the chapter reads, in milliseconds; what was not measured is left out."""
    times = {"cold_ms": cold, "resident_ms": resident, "pageable_ms": pageable, "pinned_ms": pinned}
    measured = {key: 1e3 * seconds for key, seconds in times.items() if seconds is not None}
    print(json.dumps({"peer": name, "version": version, **measured}))
