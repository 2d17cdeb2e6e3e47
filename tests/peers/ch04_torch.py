"""Chapter 4 with PyTorch: each reduction is a method."""

import numpy as np
import torch

import peer

ROWS, COLUMNS = 8192, 4096

a, _ = peer.inputs(peer.N)
device_a = torch.from_numpy(a).cuda()
device_bytes = torch.from_numpy(peer.random_bytes(peer.N)).cuda()
x = peer.normal_rows(ROWS, COLUMNS)
rows = [torch.from_numpy(x).cuda() for _ in range(2)]

# ANCHOR: reduce
total = device_a.sum()
running = torch.cumsum(device_a, 0)
counts = torch.bincount(device_bytes, minlength=256)
probabilities = torch.softmax(rows[0], 1)
normed = torch.nn.functional.layer_norm(rows[0], (COLUMNS,))
# ANCHOR_END: reduce

peer.check_close("sum", total.item(), a.sum(dtype=np.float64), 1e-5)
peer.check_close("scan", running[-1].item(), a.sum(dtype=np.float64), 1e-4)
peer.check_close("histogram", counts.cpu(), np.bincount(device_bytes.cpu().numpy(), minlength=256), 0)
peer.check_close("softmax", probabilities[:64].cpu(), peer.softmax(x[:64]), 1e-5)
peer.check_close("layer norm", normed[:64].cpu(), peer.layer_norm(x[:64]), 1e-5)
del running, probabilities, normed


def event():
    now = torch.cuda.Event(enable_timing=True)
    now.record()
    return now


def elapsed_ms(begin, end):
    end.synchronize()
    return begin.elapsed_time(end)


def rate(bytes_moved, work, batch=4):
    return bytes_moved / peer.median_event_seconds(event, elapsed_ms, work, batch=batch) / 1e9


turn = iter(range(10**9))


def row():
    return rows[next(turn) % 2]  # two sets that do not fit into the cache together


peer.report_rates(
    "PyTorch",
    torch.__version__,
    sum=rate(4 * peer.N, lambda: device_a.sum()),
    scan=rate(8 * peer.N, lambda: torch.cumsum(device_a, 0)),
    histogram=rate(peer.N, lambda: torch.bincount(device_bytes, minlength=256), batch=1),
    softmax=rate(8 * ROWS * COLUMNS, lambda: torch.softmax(row(), 1)),
    layer_norm=rate(8 * ROWS * COLUMNS, lambda: torch.nn.functional.layer_norm(row(), (COLUMNS,))),
)
