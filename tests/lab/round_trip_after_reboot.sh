# The host boots after the power cut of round_trip.sh: one PF has no VFs, and the start creates and configures them;
# the other is set up by its administrator. At the end everything is restored.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

section "the host has booted"
install_vfpass
restore_state
require "the drivers load, and the InfiniBand PF has its IPoIB netdev" load_mlx5 rdma
pf=$(pf_address 0) netdev=$(pf_netdev 0)
other=$(pf_address 1) other_netdev=$(pf_netdev 1)
make_vfs "$other" 2
ip link set dev "$netdev" up
ip link set dev "$other_netdev" vf 1 node_guid 02:00:00:00:00:00:0b:01
ip link set dev "$other_netdev" vf 1 port_guid 02:00:00:00:00:00:0b:02
# There is no hook when the daemon starts; libvirt remembers that until it is reloaded.
start_libvirt
expect "hook install" vfpass hook install
expect_said "the first hook reloads the daemon" "reload"
expect "the PF has no VFs" test ! -e "/sys/bus/pci/devices/$pf/virtfn0"
snapshot_host /tmp/host.before "$pf" "$other"
no_lease_runs() { ! leases | grep -q running; }
expect "no lease from before the boot is running" no_lease_runs

section "the start creates the VFs and restores their attributes"
expect "virsh start" virsh start train0
vf_attributes "$netdev" 2 >/tmp/rail0
vf_attributes "$netdev" 0 >/tmp/rail1
vf_attributes "$other_netdev" 1 >/tmp/rail2
for rail in rail0 rail1 rail2; do
    expect_same_file "$rail has its attributes again" "/lab/state/$rail" "/tmp/$rail"
done
expect "the PF has the same VF count as before" test "$(find "/sys/bus/pci/devices/$pf/" -name 'virtfn*' | wc -l)" = 4
expect_equal "four leases are running" 4 "$(leases | grep -c running)"
expect "status reports no drift" vfpass status train0

section "the stop scrubs the VFs and keeps the leases"
virsh destroy train0 >/dev/null
four_reserved() { test "$(leases | grep -c reserved)" = 4; }
expect "the leases are reserved" wait_until 20 four_reserved
refuse "the VLANs are cleared" grep -q "vlan 10[01]" <(ip -d link show dev "$netdev")
expect_contains "the GUIDs are all ones" "PORT_GUID ff:ff:ff:ff:ff:ff:ff:ff" \
    vf_attributes "$other_netdev" 1
expect "a second attach changes nothing" vfpass attach train0

section "detach restores everything"
expect "detach" vfpass detach train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
snapshot_host /tmp/host.after "$pf" "$other"
expect_same_file "the XML is the one from before the reboot, byte for byte" /lab/state/xml.before /tmp/xml.after
expect_same_file "drivers, overrides, attributes, autoprobe and VF counts are restored" \
    /tmp/host.before /tmp/host.after
expect "a second detach changes nothing" vfpass detach train0

section "a PF without VFs: VFs are created for the first lease and removed with the last"
echo 0 >"/sys/bus/pci/devices/$pf/sriov_numvfs"
snapshot_host /tmp/host.before "$pf"
mapping train0 rail0 "$pf" 'index: 5' 'vlan: {id: 100, qos: 1}'
expect "attach" vfpass attach train0
expect "the VFs up to the mapping's index were created" test -e "/sys/bus/pci/devices/$pf/virtfn5"
refuse "no further VF was created" test -e "/sys/bus/pci/devices/$pf/virtfn6"
expect "no VF was probed by mlx5_core" test -z "$(driver_of "$(vf_of "$pf" 2)")"
expect "detach" vfpass detach train0
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the XML is restored" /lab/state/xml.before /tmp/xml.after

expect "hook remove" vfpass hook remove
refuse "the hook is removed" test -e /etc/libvirt/hooks/qemu.d/vfpass
finish
