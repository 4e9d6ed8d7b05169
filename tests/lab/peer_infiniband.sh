# vfpass verify --peer with two guests whose VFs are of one InfiniBand port: the guests' IPoIB and rdma_cm ask the subnet administrator
# of the model of a ConnectX (lab/connectx) for groups and paths.
# covers: lab/connectx/subnet_administrator.c lab/connectx/multicast.c src/probe/rdma/rdma_cm_* src/guest/verify/verify_path.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

verify_json() {
    vfpass verify train0 --peer train1 --json --bytes 64K --iterations 256 --relaxed-ordering off --no-tools --timeout 1500 "$@" \
        2>/tmp/verify.log
}
# ipoib_up GUEST ADDRESS: waits until the VF's IPoIB netdev has joined the broadcast group.
ipoib_up() {
    # shellcheck disable=SC2016  # the guest's shell expands it
    guest_shell "$1" "set -- $2"'; ip link set lo up
        cd /sys/bus/pci/drivers/mlx5_core
        until ls 0*/net/* >/dev/null 2>&1 && ls 0*/infiniband >/dev/null 2>&1; do usleep 200000; done
        netdev=$(ls 0*/net)
        ip link set "$netdev" up && ip address add "$1/24" dev "$netdev" || exit
        until [ "$(cat "/sys/class/net/$netdev/operstate")" = up ]; do usleep 200000; done
        ls /dev/infiniband'
}

section "two guests with a VF each"
install_vfpass
require "the drivers load, and the InfiniBand PF has its IPoIB netdev" load_mlx5 rdma
pf=$(pf_address 1)
make_vfs "$pf" 2
start_libvirt
expect "hook install" vfpass hook install
for number in 0 1; do
    define_guest "train$number" --rdma
    mapping "train$number" rail0 "$pf" "index: $number" 'infiniband: {node-guid: auto, port-guid: auto}'
    expect "attach train$number" vfpass attach "train$number"
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 500
    expect_contains "its IPoIB is up" uverbs0 ipoib_up "train$number" "10.99.0.$((number + 1))"
done
expect "train0 reaches train1 by IPoIB" guest_shell train0 'ping -c 1 -W 60 10.99.0.2'
took "both guests"

section "between guests"
verified 0 "verify passes"
expect_equal "rdma_cm connects both addresses" "passed 10.99.0.1 to 10.99.0.2" \
    "$(member '.findings[] | select(.key == "peer-rdma-cm") | .result + " " + (.seen | split(",")[0])')"
expect_equal "all data checks pass" "passed passed" \
    "$(member '[.findings[] | select(.key == "peer-data-host").result] | join(" ")')"
expect_equal "the host has counted the data of both VFs" passed \
    "$(member '[.findings[] | select(.key == "counters").result] | unique | join(" ")')"
took "a verification"

section "no subnet administrator"
card 1 subnet-manager down >/dev/null
verified 4 "a port is not active any more"
card 1 subnet-manager up >/dev/null
finish
