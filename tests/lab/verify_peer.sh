# vfpass verify --peer with two guests that have VFs of one card, by the kernel's own mlx5_ib. The probes exchange messages
# through the two agents; only RDMA goes through the card, which counts it.
# covers: src/guest/verify/*pair* src/guest/verify/party.* src/guest/verify/verify_path.* src/guest/verify/verify_guest.cpp src/guest/agent/include/vfpass/agent/probe_program.* src/guest/verify/transfer_options.* src/probe src/commands/verify_command.cpp src/guest/verify/data_path.*
# covers: tests/lab/verify_common.sh lab/connectx
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# Few passes over many messages: each pass costs four messages through both agents.
small=(--bytes 64K --iterations 256)
verify_json() {
    vfpass verify train0 --peer train1 --json --timeout 1500 "${small[@]}" "$@" 2>/tmp/verify.log
}

set_peer_link() {
    guest_shell train1 "ip link set \$(ls /sys/bus/pci/drivers/mlx5_core/0*/net) $1"
}

section "two guests with a VF each"
install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
ip link set dev "$netdev" up
echo 0 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
make_vfs "$pf" 2
start_libvirt
expect "hook install" vfpass hook install
# One after the other: two guests that boot in parallel take twice as long.
for number in 0 1; do
    define_guest "train$number" --rdma
    mapping "train$number" rail0 "$pf" "index: $number"
    expect "attach train$number" vfpass attach "train$number"
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 500
    expect_contains "its RDMA device is up" uverbs0 rdma_up "train$number" "10.99.0.$((number + 1))"
done
expect "train0 reaches train1" guest_shell train0 'ping -c 1 -W 60 10.99.0.2'
took "both guests"

section "between guests"
verified 0 "verify passes"
expect_equal "the report names the peer" train1 "$(member .peer)"
expect "the reach check has a latency" grep -xE "[0-9.]+ (us|ms) in one direction" \
    <(member '.findings[] | select(.key == "peer-reach").seen')
expect_equal "rdma_cm connects both addresses" "passed 10.99.0.1 to 10.99.0.2" \
    "$(member '.findings[] | select(.key == "peer-rdma-cm") | .result + " " + (.seen | split(",")[0])')"
expect_equal "all data checks pass" "passed passed passed passed" \
    "$(member '[.findings[] | select(.key == "peer-data-host").result] | join(" ")')"
expect_equal "the counters checks of both VFs pass" \
    "rail0 passed: 4, train1:rail0 passed: 4" "$(member '[.findings[] | select(.key == "counters") | "\(.entry) \(.result)"] |
        group_by(.) | map("\(.[0]): \(length)") | join(", ")')"
expect_equal "the figures have write and read, without and with relaxed ordering, and latency" "write read write read read send" \
    "$(member '[.figures[].operation] | join(" ")')"
left_behind() {
    guest_shell "$1" 'ls /var/lib/vfpass-probe | grep exchange; ps | grep "[v]fpass-probe-"; true'
}
expect_equal "no file or process is left in train0" "" "$(left_behind train0)"
expect_equal "no file or process is left in train1" "" "$(left_behind train1)"
# Nothing is broken without librdmacm: only applications that use it need it.
library=$(guest_shell train1 'ls /lib/x86_64-linux-gnu/librdmacm.so.1')
guest_shell train1 "mv $library /tmp/"
small+=(--relaxed-ordering off)
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
ip link set dev "$netdev" vf 1 vlan 4
verified 4 "the switch separates the VFs"
broken peer-reach "" "rail0 - train1:rail0"
ip link set dev "$netdev" vf 1 vlan 0
set_peer_link down
verified 4 "the peer's link is down"
broken link down "train1:rail0"
expect_contains "the link is up again" uverbs0 rdma_up train1 10.99.0.2
ip link set dev "$netdev" vf 1 state disable
verified 4 "the host has disabled the peer's link"
broken link down "train1:rail0"
ip link set dev "$netdev" vf 1 state auto
expect_contains "the link is up again" uverbs0 rdma_up train1 10.99.0.2
card 0 freeze vf1 >/dev/null
verified 4 "the peer's VF does not count"
broken counters "0 bytes" "train1:rail0"
card 0 clear >/dev/null
expect "the peer is suspended" virsh suspend train1
verified 6 "verify with a suspended peer"
broken agent "" "train1:"
expect_exit 2 "a VM is not its own peer" vfpass verify train0 --peer train0
expect_exit 2 "a peer that does not exist" vfpass verify train0 --peer nobody
took "the whole section"
finish
