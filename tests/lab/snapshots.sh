# Snapshots, reverts and managed save of an attached domain: libvirt restores older XML, which contains devices
# that were detached or lacks devices that are leased.
# covers: src/domain src/commands/status_command.cpp src/hook
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
vf=$(vf_of "$pf" 1)
start_libvirt
vfpass hook install
qemu-img create -q -f qcow2 /var/lib/libvirt/images/a.qcow2 4M
disk_xml /var/lib/libvirt/images/a.qcow2 >/tmp/disk.xml
define_tiny a --device /tmp/disk.xml
vlan() { mapping a rail0 "$pf" 'index: 1' "vlan: {id: $1}"; }
vlan 11
take() { virsh --quiet snapshot-create-as a "$@"; }
revert() { virsh --quiet snapshot-revert a "$@"; }
starts_with_vlan() {
    expect "$1: a starts" start_paused a
    expect "$1: a holds the VF" holds_vf a
    expect_contains "$1: the VF is in VLAN $2" "vlan $2" vf_attributes "$netdev" 1
}

section "snapshots of a domain with a VF"
expect "a snapshot before the attach" take bare
expect "attach a" vfpass attach a
expect "a snapshot of the configuration with the VF" take attached
starts_with_vlan "after the snapshots" 11
refuse "libvirt refuses a memory snapshot of a guest with a VF" take memory
refuse "libvirt refuses a managed save of a guest with a VF" virsh managedsave a
expect "the guest keeps its VF" holds_vf a
expect "no drift" vfpass status a
stop_hard a

section "revert to a configuration without the leased VF"
expect "revert" revert bare
refuse "the XML has none of our devices" in_xml a --inactive
expect_exit 3 "status reports drift" vfpass status a
expect_said "the remedy is printed" "vfpass attach a"
expect "a starts without the VF, as its XML says" start_paused a
refuse "the guest holds no VF" holds_vf a
expect_equal "the lease is kept" reserved "$(lease_state a)"
expect_exit 3 "status reports drift while a runs" vfpass status a
expect_said "the remedy is printed" "vfpass attach a"
stop_hard a
expect "attach a" vfpass attach a
expect "no drift" vfpass status a
starts_with_vlan "after attach" 11
stop_hard a

section "revert to the configuration of an earlier attach"
vlan 12
expect "attach with another VLAN" vfpass attach a
expect "revert" revert attached
expect_exit 3 "status reports drift" vfpass status a
expect_exit 1 "the start is refused" start_paused a
expect_said "the reason is printed" "older version"
expect_said "the remedy is printed" "vfpass attach"
refuse "the VF is not in the old VLAN" grep -q "vlan 11" <(vf_attributes "$netdev" 1)
expect "attach a" vfpass attach a
starts_with_vlan "after attach" 12
stop_hard a

section "revert to a configuration with a VF that was detached"
expect "detach a" vfpass detach a
expect "revert" revert attached
expect "the XML has the VF" in_xml a --inactive
expect_exit 3 "status" vfpass status
expect_said "status says that the lease has ended" "it has ended"
expect_said "the remedy is printed" "vfpass attach a"
expect_exit 1 "the start is refused" start_paused a
expect_said "the reason is printed" "it has ended"
expect_equal "the VF stays on the host's driver" mlx5_core "$(driver_of "$vf")"
rm "$vms/a.yaml"
expect "detach removes the device without a mapping" vfpass detach a
refuse "the XML has none of our devices" in_xml a --inactive
expect_equal "the VF stays on the host's driver" mlx5_core "$(driver_of "$vf")"
expect "status reports no problem" vfpass status
expect "a starts" start_paused a
stop_hard a

section "revert to a configuration with a VF that another domain has"
define_tiny b
mapping b rail0 "$pf" 'index: 1' 'vlan: {id: 21}'
expect "attach b" vfpass attach b
expect "revert" revert attached
expect "b starts" start_paused b
expect_exit 1 "a does not start" start_paused a
expect_contains "b's VF has its VLAN" "vlan 21" vf_attributes "$netdev" 1
expect "b holds the VF" holds_vf b
expect "detach a" vfpass detach a
stop_hard b
expect "detach b" vfpass detach b
rm "$vms/b.yaml"

section "revert of a guest that runs with a VF"
vlan 13
expect "attach a" vfpass attach a
expect "a snapshot with the VF" take again
starts_with_vlan "before the revert" 13
expect "revert to a stopped guest without the VF" revert bare
expect "the guest has stopped" wait_until 30 guest_off a
expect_equal "the lease is reserved" reserved "$(lease_state a)"
refuse "the VF is scrubbed" grep -q "vlan 13" <(vf_attributes "$netdev" 1)
expect_exit 3 "status reports drift" vfpass status a
expect "revert to a running guest with the VF" revert again --paused
expect "the guest holds the VF" holds_vf a
expect_contains "the VF has its VLAN" "vlan 13" vf_attributes "$netdev" 1
expect_equal "the lease is running" running "$(lease_state a)"
expect "no drift" vfpass status a
stop_hard a
expect "detach a" vfpass detach a

section "revert to a guest that ran without a VF"
expect "a starts" start_paused a
expect "a snapshot with its memory" take memory
stop_hard a
expect "attach a" vfpass attach a
starts_with_vlan "before the revert" 13
expect "revert" revert memory --paused --force
expect "the guest runs" is_active a
refuse "the guest does not hold the VF" holds_vf a
expect_equal "the lease is reserved" reserved "$(lease_state a)"
expect_exit 3 "status reports drift" vfpass status a
stop_hard a
expect "detach a" vfpass detach a
expect_equal "the VF's driver is restored" mlx5_core "$(driver_of "$vf")"

section "managed save, then attach"
expect "a starts" start_paused a
expect "managed save without a VF" virsh managedsave a
expect "attach a" vfpass attach a
expect_said "attach warns about the saved image" "managedsave-remove a"
expect_exit 3 "status reports drift" vfpass status a
expect_said "the remedy is printed" "managedsave-remove a"
expect "the saved guest is restored" start_paused a
refuse "the guest does not hold the VF" holds_vf a
expect_equal "the lease is kept" reserved "$(lease_state a)"
stop_hard a
expect "no drift after the saved image is used" vfpass status a
starts_with_vlan "the next start" 13
stop_hard a

section "a disk-only snapshot while the guest runs with its VF"
starts_with_vlan "before the snapshot" 13
expect "an external snapshot of the disk" take overlay --disk-only --no-metadata \
    --diskspec vda,file=/var/lib/libvirt/images/a.overlay
expect "the guest holds the VF" holds_vf a
expect "no drift" vfpass status a
stop_hard a
starts_with_vlan "on the overlay" 13
stop_hard a
expect "detach a" vfpass detach a
expect "no lease" no_lease
expect_equal "the VF's driver is restored" mlx5_core "$(driver_of "$vf")"
finish
