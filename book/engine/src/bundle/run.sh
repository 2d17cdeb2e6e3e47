#!/usr/bin/env bash
# CUDA Ladder on a GPU machine that has no Rust. Needs NVIDIA's driver, bash, coreutils, grep, tar and gzip.
#
#   ./run.sh list                      the chapters in this bundle
#   ./run.sh record [CHAPTER…]         run chapters (all, if none is named) on the GPU and record what comes out
#   ./run.sh profile CHAPTER [OPTION…] run a chapter under Nsight Systems and Nsight Compute (--timeline, --kernels, --dry-run)
#   ./run.sh bench [CHAPTER…]          criterion benches, timed by CUDA events
#   ./run.sh pack                      pack the results again
#
# CHAPTER is ch01 or a whole name. Results gather in results/. Each command ends by packing them into results-<date>.tar.gz,
# which `cargo book import` takes. Nothing outside this folder is written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() {
    echo "run.sh: $*" >&2
    exit 1
}

help() {
    while IFS= read -r line; do
        [[ $line == '#!'* ]] && continue
        [[ $line == '#'* ]] || break
        line=${line#\#}
        echo "${line# }"
    done <run.sh
}

chapters() {
    local program
    for program in bin/ch[0-9]*-*; do
        [[ -f $program ]] && echo "${program#bin/}"
    done
}

# The whole name of a chapter, from ch01 or from itself.
chapter() {
    local name
    for name in $(chapters); do
        if [[ $name == "$1" || ${name%%-*} == "$1" ]]; then
            echo "$name"
            return
        fi
    done
    fail "there is no chapter $1; there are: $(chapters | tr '\n' ' ')"
}

# The programs are the ones that the manifest names, whatever happened on the way.
verify() {
    sha256sum --quiet --check SHA256SUMS || fail "files of this bundle are damaged: copy it again"
}

pack() {
    local file archive
    shopt -s nullglob
    local files=(results/records/*/record.json results/records/*/trace.json results/bench/*.txt)
    ((${#files[@]})) || fail "there are no results yet"
    # Records are published. lab leaves names and paths out; this is the place to notice if it ever does not.
    for word in "${HOSTNAME:-}" "${USER:-}" "${HOME:-}"; do
        if [[ ${#word} -ge 4 && $word != root && $word != /root && $word != localhost ]]; then
            for file in "${files[@]}"; do
                grep -qwF -e "$word" "$file" && fail "$file holds the name of this machine or user ($word)"
            done
        fi
    done
    cp manifest.json results/manifest.json
    (cd results && sha256sum "${files[@]#results/}" >SHA256SUMS)
    archive=results-$(date -u +%Y-%m-%d-%H%M%S).tar.gz
    tar -czf "$archive" -C results manifest.json SHA256SUMS "${files[@]#results/}"
    echo "Results are in $PWD/$archive ($(stat -c %s "$archive") bytes). In the repository: cargo book import ${archive}"
}

record() {
    local name failed=()
    local names=()
    for name in "$@"; do names+=("$(chapter "$name")"); done
    ((${#names[@]})) || mapfile -t names < <(chapters)
    mkdir -p results/records
    for name in "${names[@]}"; do
        echo "==> $name"
        "bin/$name" --device gpu --record results/records || failed+=("$name")
    done
    pack
    ((${#failed[@]} == 0)) || fail "these failed: ${failed[*]}"
}

bench() {
    local name program failed=()
    local names=()
    for name in "$@"; do names+=("$(chapter "$name")"); done
    ((${#names[@]})) || mapfile -t names < <(chapters)
    mkdir -p results/bench
    export CRITERION_HOME=$PWD/criterion
    for name in "${names[@]}"; do
        for program in bin/bench."$name".*; do
            [[ -f $program ]] || continue
            echo "==> ${program#bin/}"
            "$program" --bench 2>&1 | tee "results/bench/${program#bin/bench.}.txt" || failed+=("$name")
        done
    done
    pack
    ((${#failed[@]} == 0)) || fail "these failed: ${failed[*]}"
}

profile() {
    (($#)) || fail "profile takes a chapter, as in ./run.sh profile ch01 --timeline"
    [[ $1 == -* || $1 == doctor ]] || set -- "$(chapter "$1")" "${@:2}"
    bin/profile "$@"
    case " $* " in
    *" doctor "* | *" --dry-run "* | *" --help "*) ;;
    *) pack ;;
    esac
}

command=${1:-help}
(($#)) && shift
case $command in
list) chapters ;;
record | profile | bench)
    verify
    "$command" "$@"
    ;;
pack) pack ;;
help | --help | -h) help ;;
*)
    help >&2
    fail "there is no command $command"
    ;;
esac
