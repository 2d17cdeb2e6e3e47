"""How much memory CuPy holds while arrays come and go: what the arrays need, and what its pool keeps."""

import json

import cupy as cp

import ch07_peer as problem

MIB = 1 << 20

# ANCHOR: memory
pool = cp.get_default_memory_pool()
arrays, used, total = {}, [], []
for name, mebibytes in problem.SEQUENCE:
    if name in arrays:
        del arrays[name]
    else:
        arrays[name] = cp.empty(mebibytes * MIB, cp.uint8)
    used.append(pool.used_bytes() / MIB)
    total.append(pool.total_bytes() / MIB)
pool.free_all_blocks()
# ANCHOR_END: memory
used.append(pool.used_bytes() / MIB)
total.append(pool.total_bytes() / MIB)
print(json.dumps({"version": cp.__version__, "used": used, "total": total}))
