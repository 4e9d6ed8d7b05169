# NCCL between two guests of one host (verify --nccl), each with a VF and a stand-in GPU: the unchanged probe loads the lab's stand-ins for
# libcuda and libnccl (lab/gpu), which write into each other's GPU memory by RDMA; the host passes the unique ID on. Then a rank dies, one
# never joins, and guests lie: about NCCL's log, about wrong values, and about what they checked.
# covers: src/probe/nccl src/guest/verify/*nccl* src/commands/verification_steps.cpp lab/gpu tests/fake/nccl
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

timeout=1800
# Each pass of the pair before NCCL costs messages through both agents: small messages take the minimum time in few passes.
usual=(--bytes 64 --iterations 2000)
verify_json() {
    vfpass verify train0 --peer train1 --nccl --json --relaxed-ordering off --no-tools --timeout $timeout "$@" 2>/tmp/verify.log
}

# setting GUEST [NAME=VALUE...]: settings of the guest's libnccl.
setting() { guest_shell "$1" "printf '%s\n' ${*:2} >/run/stand-in-nccl"; }

section "two guests with a VF and a GPU each"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
mapfile -t gpus < <(lspci -D -d 10de: | cut -d' ' -f1)
make_vfs "$pf" 2
ip link set dev "$netdev" up
start_libvirt
expect "hook install" vfpass hook install
for number in 0 1; do
    define_guest "train$number" --gpu
    mapping "train$number" rail0 "$pf" "index: $number" 'guest: {mtu: 9000}'
    printf 'gpus:\n  - {name: gpu0, pci: "%s"}\n' "${gpus[$number]}" >>"$vms/train$number.yaml"
    # The second GPU is on the other NUMA node than the PF, and the guests have no NUMA cells.
    [ "$number" = 0 ] || echo 'topology: flat' >>"$vms/train$number.yaml"
    expect "attach train$number" vfpass attach "train$number"
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 900
    expect_contains "its RDMA device is up" uverbs0 rdma_up "train$number" "10.99.0.$((number + 1))"
done
expect "train0 reaches train1" guest_shell train0 'ping -c 1 -W 60 10.99.0.2'
took "both guests"

section "the collectives"
# Once with all sizes, which the pair takes minutes for. Those of 8 bytes to 4 KiB fit into what the probe uses of the stand-in's memory.
verified 0 "verify passes" --sizes --iterations 1
seen nccl-ranks passed "rank 0 in train0 with NCCL 2.28.9, rank 1 in train1"
seen nccl-data passed "20 operations, no wrong value"
seen nccl-transport passed "GDRDMA over rail0"
seen nccl-traffic passed bytes
expect_equal "the traffic of both VFs is the host's observation" "train0: host passed, train1: host passed" \
    "$(member '[.findings[] | select(.key == "nccl-traffic") | "\(.entry // "train0:") \(.observer) \(.result)"] | join(", ")')"
expect_equal "each operation and size has a figure" 20 "$(member '[.figures[] | select(.source | contains("nccl"))] | length')"
jq -c '.findings[] | select(.key | startswith("nccl")) | [.key, .entry, .result, .seen]' <<<"$document"
took "a verification"

section "ranks that fail"
setting train1 FAKE_NCCL_FAULT=dies FAKE_NCCL_RANK=1
began=$SECONDS
verified 4 "a rank dies" "${usual[@]}"
seen nccl-ranks failed "rank 1 (train1)"
expect "verify ends long before its deadline" test $((SECONDS - began)) -lt $((timeout / 2))
setting train1 FAKE_NCCL_FAULT=wrong FAKE_NCCL_RANK=1
verified 4 "a rank gets a wrong value" "${usual[@]}"
seen nccl-data failed "train1, all-reduce of 64 bytes: 1 wrong values"
setting train1 FAKE_NCCL_FAULT=absent FAKE_NCCL_RANK=1
# Enough for what comes before NCCL.
timeout=900 began=$SECONDS
verified 4 "a rank never joins" "${usual[@]}"
seen nccl-ranks failed "rank 0 waits at"
expect "verify ends at its deadline" test $((SECONDS - began)) -lt $((timeout + 60))
setting train1
timeout=1800

section "guests that lie"
for guest in train0 train1; do
    setting $guest FAKE_NCCL_FAULT=invents
done
verified 4 "both claim GDRDMA and right values, and move nothing" "${usual[@]}"
seen nccl-data passed "no wrong value"
seen nccl-transport passed GDRDMA
seen nccl-traffic failed bytes
expect_contains "the remedy says what it means" "do not trust the guest" finding nccl-traffic remedy
# The report of a probe that ran, but checked nothing; the library ends the probe with it.
report='{"passed": true, "nccl_version": "2.28.9", "ranks": 2, "left_out": [], "log": {"devices": [], "connections": []}, "runs": [
    {"operation": "all-reduce", "bytes": 64, "iterations": 20, "seconds": 1, "checked_values": 0, "wrong_values": 0,
     "bus_gigabytes_per_second": 400}]}'
for number in 0 1; do
    setting "train$number" FAKE_NCCL_FAULT=claims FAKE_NCCL_RANK=$number "'FAKE_NCCL_REPORT=$(tr -d '\n' <<<"$report")'"
done
verified 4 "both report a pass without a checked value" "${usual[@]}"
seen nccl-data failed "train0, all-reduce of 64 bytes: only 0 values checked"
finish
