# A hand-made VM with an InfiniBand VF moves in and out while it runs: `vfpass import` finds the VF's GUIDs, attach takes the hostdev over,
# the guest keeps its port with its GUID, verify passes, and detach --keep leaves it.
# covers: src/commands/import* src/plan/import* src/plan/adopt_element.cpp src/domain/adopted_elements.* src/report/kept_devices.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

verify_json() { vfpass verify a --json --bytes 4K --iterations 16 --no-tools --relaxed-ordering off --timeout 600 2>/tmp/verify.log; }

section "a running VM with a hand-made hostdev on an InfiniBand VF with GUIDs"
install_vfpass
require "the drivers load, and the InfiniBand PF has its IPoIB netdev" load_mlx5 rdma
pf=$(pf_address 1) netdev=$(pf_netdev 1)
make_vfs "$pf" 4
# libvirt refuses a hostdev without /dev/vfio/vfio, which systemd makes at boot, and the init of the lab does not.
modprobe vfio-pci
ip link set dev "$netdev" vf 1 node_guid 02:00:00:00:00:00:0b:01
ip link set dev "$netdev" vf 1 port_guid 02:00:00:00:00:00:0b:02
ip link set dev "$netdev" vf 1 state auto
vf=$(vf_of "$pf" 1)
start_libvirt
vfpass hook install
define_with a "$vf" --rdma
settle a
virsh dumpxml --inactive --security-info a >/tmp/xml.before
expect "virsh start" virsh start a
expect "the guest's agent answers" wait_for_agent a 400
expect "its driver is bound to the VF" wait_until 120 guest_drives a 1
has_rdma_device() { guest_shell a 'ls /sys/class/infiniband/*/ports/1/state'; }
expect "it has an RDMA device" wait_until 120 has_rdma_device
start_marker() { guest_shell a 'sleep 86400 >/dev/null 2>&1 </dev/null & echo $! >/run/marker'; }
expect "a process is started in the guest" start_marker
card 1 subnet-manager up >/dev/null

# The guest's RDMA device, GID, and a process with the time at which it started (proc(5)).
# shellcheck disable=SC2016  # the guest's shell expands it
in_the_guest() {
    guest_shell a 'ls /sys/class/infiniband && cat /sys/class/infiniband/*/ports/1/gids/0 && ls -l /sys/class/infiniband/*/device | sed "s/.*->//"
        set -- $(cat /proc/$(cat /run/marker)/stat) && echo process $1 since ${22}'
}
in_the_guest >/tmp/guest.before
expect_contains "the guest has the VF's port GUID" 0200:0000:0000:0b02 cat /tmp/guest.before
expect_contains "its process runs" process cat /tmp/guest.before
snapshot_host /tmp/host.before "$pf"
undisturbed() {
    in_the_guest >/tmp/guest.after
    expect_same_file "$1: the guest has the same device, and its process runs" /tmp/guest.before /tmp/guest.after
    snapshot_host /tmp/host.after "$pf"
    expect_same_file "$1: the host is unchanged" /tmp/host.before /tmp/host.after
}

section "in"
expect "import --write" vfpass import a --write
expect_contains "the mapping has the device" "index: 1" cat "$vms/a.yaml"
expect_contains "and its node GUID" 02:00:00:00:00:00:0b:01 cat "$vms/a.yaml"
expect_contains "and its port GUID" 02:00:00:00:00:00:0b:02 cat "$vms/a.yaml"
expect "check accepts the mapping" vfpass check a
expect "attach" vfpass attach a
undisturbed "attached"
expect "the lease is running" has_lease running
expect "status reports no drift" vfpass status a
verified 0 "verify passes"
expect_contains "its RDMA device has the port GUID of the lease" 02:00:00:00:00:00:0b:02 finding rdma-device expected
expect_equal "the data is correct, and the host has counted it" "passed passed" \
    "$(finding data-host result) $(finding counters result)"
undisturbed "verified"

section "out"
vfpass --json detach --keep a >/tmp/kept.json
expect_contains "JSON has the command for the GUID" "vf 1 port_guid 02:00:00:00:00:00:0b:02" jq -r '.kept.commands[]' /tmp/kept.json
undisturbed "kept"
virsh dumpxml --inactive --security-info a >/tmp/xml.after
expect_same_file "the XML is restored" /tmp/xml.before /tmp/xml.after
expect "no lease" no_lease
jq -r '.kept.commands[]' /tmp/kept.json >/tmp/kept.sh
expect "the commands run" sh -e /tmp/kept.sh
undisturbed "after the commands"
has_driver() { test "$(driver_of "$vf")" = mlx5_core; }
virsh --quiet destroy a
expect "libvirt gives the VF back to its driver" wait_until 60 has_driver
expect "virsh start without vfpass" virsh start --paused a
expect_contains "the VF has its GUID" "PORT_GUID 02:00:00:00:00:00:0b:02" vf_attributes "$netdev" 1
finish
