# vfpass verify --peer with two guests that have SoftRoCE over their VFs and a wire between them. The probes
# exchange messages through the two agents; only RDMA uses the wire, where the host counts it.
# covers: src/verify/*pair* src/agent/include/vfpass/agent/exchange.* src/verify/transfer_options.* src/probe src/cli/verify_command.cpp
# covers: tests/lab/verify_common.sh lab/lib/wire.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# Under double emulation SoftRoCE is slow, so messages are small and few.
small=(--bytes 4K --iterations 8)
verify_json() {
    vfpass verify train0 --peer train1 --json --timeout 1500 "${small[@]}" "$@" 2>/tmp/verify.log
}

# In the guest: adds SoftRoCE to the VF's netdev. MTU 9000 gives an RDMA MTU of 4096, which means fewer packets.
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
expect "a wire is created" start_wire
expect "hook install" vfpass hook install
# One after the other: two guests that boot in parallel take twice as long.
for number in 0 1; do
    define_guest "train$number" --rdma --wire
    mapping "train$number" rail0 "$pf" "index: $number"
    expect "attach train$number" vfpass attach "train$number"
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 500
    expect "the VF is connected to the wire" wire_vf "train$number"
    expect_contains "a SoftRoCE link is added" uverbs0 rdma_up "train$number" "10.99.0.$((number + 1))"
    mirror_wire "train$number" "$pf" "$number" &
    mirrors[number]=$!
done
expect "train0 reaches train1" guest_shell train0 'ping -c 1 -W 60 10.99.0.2'
took "both guests"

section "between guests"
verified 0 "verify passes"
expect_equal "the report names the peer" train1 "$(member .peer)"
expect_contains "the reach check has a latency" " us in one direction" \
    member '.findings[] | select(.key == "peer-reach").seen'
expect_equal "rdma_cm connects both addresses" "passed 10.99.0.1 to 10.99.0.2" \
    "$(member '.findings[] | select(.key == "peer-rdma-cm") | .result + " " + (.seen | split(",")[0])')"
expect_equal "both data checks pass" "passed passed" \
    "$(member '[.findings[] | select(.key == "peer-data-host").result] | join(" ")')"
expect_equal "the counters checks of both VFs pass" \
    "rail0 passed, rail0 passed, train1:rail0 passed, train1:rail0 passed" \
    "$(member '[.findings[] | select(.key == "counters") | "\(.entry) \(.result)"] | sort | join(", ")')"
expect_equal "the figures have write, read and latency" "write read read send" "$(member '[.figures[].operation] | join(" ")')"
left_behind() {
    guest_shell "$1" 'ls /var/lib/vfpass-probe | grep exchange; ps | grep "[v]fpass-probe-"; true'
}
expect_equal "no file or process is left in train0" "" "$(left_behind train0)"
expect_equal "no file or process is left in train1" "" "$(left_behind train1)"
# Nothing is broken without librdmacm: only applications that use it need it.
library=$(guest_shell train1 'ls /lib/x86_64-linux-gnu/librdmacm.so.1')
guest_shell train1 "mv $library /tmp/"
verified 0 "verify passes without librdmacm"
seen peer-rdma-cm waived "train1:rail0: librdmacm is not installed"
guest_shell train1 "mv /tmp/librdmacm.so.1 $library"
took "the section"

section "broken links"
verified 4 "a byte is corrupted" --inject flip
broken peer-data-host "flipped in message" "rail0 - train1:rail0"
guest_shell train1 'rmmod rdma_ucm'
verified 0 "the peer's kernel has no rdma_ucm, which RDMA does not need"
seen peer-rdma-cm warning "cannot open /dev/infiniband/rdma_cm"
expect_contains "the remedy names the module" "modprobe rdma_ucm" finding peer-rdma-cm remedy
guest_shell train1 'insmod /modules/rdma_ucm.ko'
ip link set wire-train1 down
verified 4 "the wire is cut"
broken peer-reach "" "rail0 - train1:rail0"
ip link set wire-train1 up
set_peer_link down
verified 4 "the peer's link is down"
broken link down "train1:rail0"
set_peer_link up
kill "${mirrors[1]}"
verified 4 "the peer's VF does not count"
broken counters "0 bytes" "train1:rail0"
expect "the peer is suspended" virsh suspend train1
verified 6 "verify with a suspended peer"
broken agent "" "train1:"
expect_exit 2 "a VM is not its own peer" vfpass verify train0 --peer train0
expect_exit 2 "a peer that does not exist" vfpass verify train0 --peer nobody
took "the whole section"
finish
