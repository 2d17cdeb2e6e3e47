"""What chapter 3's Python peers share: a matrix to transpose, its check, and the line that the chapter reads."""

import json
import sys

import numpy as np

import peer

SIDE = 8192  # rows and columns


def matrix():
    """A float32 matrix of numbers that are neither zero nor all alike."""
    a, _ = peer.inputs(SIDE * SIDE)
    return a.reshape(SIDE, SIDE)


def check(a, c):
    """Stops unless c is the transpose of a, every element of it."""
    if c.shape != a.T.shape or not np.array_equal(c, a.T):
        sys.exit("the transpose is wrong")


def report(name, version, seconds, **more):
    """Prints the line that the chapter reads: GB/s, each float read once and written once."""
    print(json.dumps({"peer": name, "version": version, "gbps": 2 * 4 * SIDE * SIDE / seconds / 1e9, **more}))
