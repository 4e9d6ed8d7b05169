#!/bin/bash
# gpus.sh [ROUNDS]: what only a machine with several GPUs can show, in at most ten minutes: vfpass's view of them beside the
# driver's, the probe's self-test on all of them, NCCL with our topology file, copies between them, and RDMA to GPU memory
# if there is an RDMA device. As root, with vfpass and the probe of $VFPASS_BUILD (default: build):
#
#     bench/gpus.sh 3
#
# Exit status: 6 with a list of what is missing here; 1 if a comparison found a difference.
set -euo pipefail

bench=$(cd "$(dirname "$0")" && pwd)
build=${VFPASS_BUILD:-$(dirname "$bench")/build}
vfpass=${VFPASS:-$build/sbin/vfpass}
probe=${VFPASS_PROBE:-$build/libexec/vfpass-probe}
rounds=${1:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
different=0

require_all() {
    local missing=() program
    for program in "$vfpass" "$probe"; do [ -x "$program" ] || missing+=("$program: build it with scripts/build"); done
    nvidia-smi >/dev/null 2>&1 || missing+=('an NVIDIA GPU with its driver (nvidia-smi)')
    python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || missing+=('PyTorch with CUDA in python3, for NCCL')
    [ ${#missing[@]} = 0 ] && return
    printf 'gpus: missing here: %s\n' "${missing[@]}" >&2
    exit 6
}

section() { printf '\n## %s\n\n' "$*"; }
# compare COMMAND...: a difference fails the benchmark, but not before its other parts have run.
compare() { "$@" || different=1; }
own() { "$vfpass" --config-dir "$work" --state-dir "$work" "$@"; }
# seconds COMMAND...: its wall time.
seconds() {
    local begin=${EPOCHREALTIME/./}
    "$@" >/dev/null
    awk -v us=$((${EPOCHREALTIME/./} - begin)) 'BEGIN { printf "%.3f\n", us / 1e6 }'
}

machine() {
    nvidia-smi --query-gpu=name,driver_version,pci.bus_id --format=csv,noheader
    echo "$(nproc) processors, Linux $(uname -r), virtual: $(systemd-detect-virt 2>/dev/null || echo unknown)"
    "$vfpass" --version | head -n 1
}

view() {
    own topo
    own topo --json >"$work/topo.json"
    compare python3 -B "$bench/gpus/driver_view.py" "$work/topo.json"
    # Exit status 1: a check fails, as on any host that is not prepared.
    own doctor --json >"$work/doctor.json" || [ $? = 1 ]
    python3 -c 'import json, sys
for each in json.load(open(sys.argv[1]))["findings"]:
    if each["result"] != "passed" or each["key"].startswith("gpu"):
        print(each["key"], each["result"], each["seen"], sep=": ")' "$work/doctor.json"
    own snapshot "$work/snapshot"
    du -sh "$work/snapshot" | cut -f 1
}

# speeds NAME FILE...: for each self-test, whether it passed, and check and fill over memset.
speeds() {
    python3 -c 'import json, sys
for name in sys.argv[2:]:
    result = json.load(open(name))
    speed = result["speed"]
    print("|", sys.argv[1], "|", result["pci"], "|", "passed" if result["passed"] else "FAILED", "|",
          f"""{speed["memset"]["median"]:.0f} | {speed["check_over_memset"]:.3f} | {speed["fill_over_memset"]:.3f} |""")' "$@"
}

# test_gpu NUMBER SERIES
test_gpu() { "$probe" gpu-selftest --gpu "$1" --rounds 20 >"$work/$2-$1.json"; }

self_tests() {
    local count number pids=()
    count=$(nvidia-smi --list-gpus | wc -l)
    for ((number = 0; number < count; number++)); do test_gpu "$number" alone || different=1; done
    for ((number = 0; number < count; number++)); do test_gpu "$number" together & pids+=($!); done
    for number in "${pids[@]}"; do wait "$number" || different=1; done
    printf '%s\n' '| self-test | GPU | result | memset, 10^9 B/s | check/memset | fill/memset |' '|---|---|---|---|---|---|'
    speeds 'one after another' "$work"/alone-*.json
    speeds 'at once' "$work"/together-*.json
}

# start_of_cuda: interleaved, because the driver's caches warm up. A self-test of a GPU by its index initializes all GPUs, by
# its address only that one.
start_of_cuda() {
    local round visible address
    address=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i 0)
    address=${address: -12}
    for ((round = 0; round < 5; round++)); do
        seconds "$probe" hello >>"$work/hello"
        for visible in 0 all; do
            if [ "$visible" = all ]; then unset CUDA_VISIBLE_DEVICES; else export CUDA_VISIBLE_DEVICES=$visible; fi
            python3 -c 'import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1"); begin = time.monotonic(); assert cuda.cuInit(0) == 0
print(f"{time.monotonic() - begin:.3f}")' >>"$work/cuInit-$visible"
            seconds "$probe" inventory >>"$work/inventory-$visible"
        done
        seconds "$probe" gpu-selftest --bytes 64M --rounds 1 --gpu 0 >>"$work/selftest-by-index"
        seconds "$probe" gpu-selftest --bytes 64M --rounds 1 --gpu "$address" >>"$work/selftest-by-address"
    done
    for each in hello cuInit-0 cuInit-all inventory-0 inventory-all selftest-by-index selftest-by-address; do
        sort -n "$work/$each" | awk -v name="$each" '{ v[NR] = $1 } END { print name ": " v[3] " s (" v[1] "-" v[5] ")" }'
    done
}

nccl() {
    own topo --format nccl >"$work/topology.xml"
    cat "$work/topology.xml"
    compare python3 -B "$bench/gpus/collectives.py" "$work/topology.xml" "$rounds"
}

peers() {
    [ "$(nvidia-smi --list-gpus | wc -l)" -gt 1 ] || { echo 'One GPU: peer access was not tried.'; return; }
    compare python3 -B "$bench/gpus/peer_access.py"
}

rdma() {
    local device
    device=$(find /sys/class/infiniband -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null | sort | head -n 1)
    [ -n "$device" ] || { echo 'No RDMA device (/sys/class/infiniband): RDMA to GPU memory was not run.'; return; }
    compare "$probe" loopback --device "$device" --initiator-memory gpu --target-memory gpu
    command -v ib_write_bw >/dev/null || { echo 'perftest is not installed: no comparison.'; return; }
    ib_write_bw -d "$device" --use_cuda=0 --use_cuda_dmabuf >"$work/server" 2>&1 &
    # The server listens on port 18515, 0x4853.
    timeout 10 bash -c 'until grep -q ":4853 .* 0A " /proc/net/tcp /proc/net/tcp6; do :; done' ||
        { cat "$work/server"; different=1; return; }
    compare ib_write_bw -d "$device" --use_cuda=0 --use_cuda_dmabuf localhost
    wait
}

require_all
section machine
machine
section 'topo, doctor, snapshot and the driver'
view
section "the probe's self-test"
self_tests
section "CUDA's start, five interleaved rounds"
start_of_cuda
section 'NCCL with our topology file'
nccl
section 'peer access'
peers
section RDMA
rdma
exit "$different"
