#!/usr/bin/env bash
# Measures with Nsight Compute what tests/counters.rs compares with, on the GPU of this machine:
#   bash record.sh PROGRAM FOLDER
# PROGRAM is the test program `counters` (cargo test -p emulator --test counters --no-run), FOLDER gets kernels.csv and rules.csv.
set -euo pipefail
program=$1 folder=$2
mkdir -p "$folder"

metrics=
for op in ld st atom red; do
    metrics+=smsp__sass_inst_executed_op_global_$op.sum,smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_$op.sum,
done
for op in ld st; do
    metrics+=smsp__sass_inst_executed_op_local_$op.sum,smsp__sass_l1tex_t_sectors_pipe_lsu_mem_local_op_$op.sum,
done
for op in ld st atom; do
    metrics+=smsp__sass_inst_executed_op_shared_$op.sum,smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_$op.sum,
done
for op in ldsm stsm; do metrics+=smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_$op.sum,; done
metrics+=smsp__sass_inst_executed_op_shared_stsm.sum,

measure() { # set, level
    CUDA_DRIVER=libcuda.so.1 JIT_OPTIMIZATION=$2 CUDA_CACHE_DISABLE=1 LC_ALL=C ncu --csv --page raw --print-units base \
        --clock-control none --cache-control none --metrics "${metrics%,}" \
        "$program" --exact "$1" --test-threads=1 >"$folder/$1.O$2.raw"
}
measure kernels 0
measure kernels 3
measure rules 0

python3 - "$folder" <<'PYTHON'
import csv, sys
folder = sys.argv[1]
for name, levels in (("kernels", (0, 3)), ("rules", (0,))):
    with open(f"{folder}/{name}.csv", "w") as out:
        header = None
        for level in levels:
            lines = [line for line in open(f"{folder}/{name}.O{level}.raw") if line.startswith('"')]
            rows = csv.DictReader(lines)
            metrics = [column for column in rows.fieldnames if column.startswith("smsp__sass_") and column.endswith(".sum")]
            next(rows)  # units
            if header is None:
                header = metrics
                print("launch,kernel,level," + ",".join(column.removesuffix(".sum").removeprefix("smsp__sass_") for column in header), file=out)
            for launch, row in enumerate(rows):
                print(launch, row["Kernel Name"], level, *(row.get(metric, "") for metric in header), sep=",", file=out)
PYTHON
