# Second boot: another card has the address of the leased one. It is neither passed to the VM nor changed to
# the leased card's previous state.
# covers: src/host/sysfs/pci_function.* src/apply/device_owner.cpp src/plan/unused_leases.cpp src/state/lease_*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

restore_state
install_vfpass
load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 4
ip link set dev "$(pf_netdev 0)" vf 1 mac 02:bb:00:00:00:01 vlan 77
start_libvirt
vfpass hook install
snapshot_host /tmp/host.before "$pf"
untouched() {
    snapshot_host /tmp/host.after "$pf"
    expect_same_file "$1: the other card is unchanged" /tmp/host.before /tmp/host.after
}

expect_equal "another card has the address" 0000:01:00.0 "$pf"
expect_exit 1 "the start is refused" virsh start a
expect_said "the reason is printed" "serial number lab9, the leased card has lab0"
untouched "the start"
expect "recover" vfpass recover
untouched "recover"
expect "detach a" vfpass detach a
expect_said "detach reports what was not restored" "not restored"
untouched "detach"
expect "no lease is left" no_lease
expect_contains "the domain is still defined" a virsh dumpxml --inactive a
refuse "the XML has none of our devices" grep -q ua-vfpass <(virsh dumpxml --inactive a)
finish
