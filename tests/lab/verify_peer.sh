# vfpass verify --peer for real: two guests with SoftRoCE over their VFs and a wire between them. The
# probes talk through the two agents; only RDMA goes over the wire, and the host counts it there.
# covers: src/guest/*pair* src/guest/exchange.* src/guest/transfer_options.* src/probe src/cli/verify.cpp
# covers: tests/lab/verify_common.sh lab/lib/wire.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# Emulated twice, SoftRoCE moves little: small messages, and few of them.
small=(--bytes 4K --iterations 8)
verify_json() {
    vfpass verify train0 --peer train1 --json --timeout 1500 "${small[@]}" "$@" 2>/tmp/verify.said
}

# In the guest: SoftRoCE on the VF's netdev. MTU 9000 makes an RDMA MTU of 4096: fewer packets.
rdma_up() {
    # shellcheck disable=SC2016  # the guest's shell expands it
    guest_shell "$1" 'netdev=$(ls /sys/bus/pci/drivers/mlx5_core/0*/net)
        ip link set lo up; ip link set "$netdev" mtu 9000 up
        ip address add '"$2"'/24 dev "$netdev"
        rdma link add rxe0 type rxe netdev "$netdev" && ls /dev/infiniband'
}

set_peer_link() {
    guest_shell train1 "ip link set \$(ls /sys/bus/pci/drivers/mlx5_core/0*/net) $1"
}

section "two guests with a VF each"
install_vfpass
load_standin
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
start_libvirt
expect "a wire" start_wire
expect "hook install" vfpass hook install
# One after the other: two guests that boot beside each other take twice as long as both in turn.
for number in 0 1; do
    define_guest "train$number" --rdma --wire
    mapping "train$number" rail0 "$pf" "index: $number"
    expect "attach train$number" vfpass attach "train$number"
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 500
    expect "its VF has a wire" wire_vf "train$number"
    expect_contains "SoftRoCE" uverbs0 rdma_up "train$number" "10.99.0.$((number + 1))"
    mirror_wire "train$number" "$pf" "$number" &
    mirrors[number]=$!
done
expect "they reach each other" guest_shell train0 'ping -c 1 -W 60 10.99.0.2'
took "both guests"

section "from guest to guest"
verified 0 "it passes"
expect_equal "the report names the peer" train1 "$(member .peer)"
expect_contains "messages come back" " us in one direction" \
    member '.findings[] | select(.key == "peer-reach").seen'
expect_equal "every byte, written and read" "passed passed" \
    "$(member '[.findings[] | select(.key == "peer-data-host").result] | join(" ")')"
expect_equal "the counters of both VFs have moved, twice" \
    "rail0 passed, rail0 passed, train1:rail0 passed, train1:rail0 passed" \
    "$(member '[.findings[] | select(.key == "counters") | "\(.entry) \(.result)"] | sort | join(", ")')"
expect_equal "figures, latency with them" "write read read send" "$(member '[.figures[].operation] | join(" ")')"
left_behind() {
    guest_shell "$1" 'ls /var/lib/vfpass-probe | grep exchange; ps | grep "[v]fpass-probe-"; true'
}
expect_equal "nothing is left in train0" "" "$(left_behind train0)"
expect_equal "nor in train1" "" "$(left_behind train1)"
took "it"

section "each broken link is found by itself"
verified 4 "a byte changes on its way" --inject flip
broken peer-data-host "flipped in message" "rail0 - train1:rail0"
ip link set wire-train1 down
verified 4 "the wire is cut"
broken peer-reach "" "rail0 - train1:rail0"
ip link set wire-train1 up
set_peer_link down
verified 4 "the peer's link is down"
broken link down "train1:rail0"
set_peer_link up
kill "${mirrors[1]}"
verified 4 "the peer's VF counts nothing"
broken counters "0 bytes" "train1:rail0"
expect "the peer is suspended" virsh suspend train1
verified 6 "its agent is gone"
broken agent "" "train1:"
expect_exit 2 "a VM is not its own peer" vfpass verify train0 --peer train0
expect_exit 2 "a peer that is not there" vfpass verify train0 --peer nobody
took "all"
finish
