# Managed save and restore of a domain with a teamed VF: the image keeps its lease, and gets the lease of today when it is restored.
# covers: src/hook src/plan/plan_arrival.cpp tests/lab/teamed.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh
# shellcheck source=SCRIPTDIR/teamed.sh
source /vfpass/tests/lab/teamed.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
start_libvirt
vfpass hook install
define_teamed a
team() { mapping a rail0 "$pf" "index: $1" "vlan: {id: $2}" 'teaming: {with: net0}'; }
save() { virsh --quiet managedsave a && wait_until 30 guest_off a; }

section "the same lease"
team 1 11
expect "attach" vfpass attach a
# libvirt compares it with that of the image when the domain is restored.
virsh dumpxml --inactive --security-info a | sed "s|<alias name='ua-vfpass-rail0'/>|&<acpi index='7'/>|" >/tmp/acpi.xml
expect "the VF gets an ACPI index" virsh --quiet define /tmp/acpi.xml
expect "a starts" start_paused a
expect "it has the index" grep -q "<acpi index='7'/>" <(virsh dumpxml a)
expect "managed save" save
expect_equal "the lease is kept" reserved "$(lease_state a)"
refuse "the VF is scrubbed" grep -q "vlan 11" <(vf_attributes "$netdev" 1)
expect "gc keeps it" vfpass gc
define_tiny b
mapping b rail0 "$pf" 'index: 1'
refuse "no other VM gets the VF" vfpass attach b
expect "a is restored" start_paused a
expect "it has the VF" has_function a "$(vf_of "$pf" 1)"
expect_contains "the VF has its VLAN" "vlan 11" vf_attributes "$netdev" 1
expect_contains "the VF has the standby's MAC" "52:54:00:12:34:99" vf_attributes "$netdev" 1
expect_equal "the lease is running" running "$(lease_state a)"

section "another VF and VLAN since the save"
expect "managed save" save
team 2 12
expect "attach" vfpass attach a
expect "a is restored" start_paused a
expect "it has the VF of today" has_function a "$(vf_of "$pf" 2)"
expect "it still has the index" grep -q "<acpi index='7'/>" <(virsh dumpxml a)
refuse "it does not have that of the image" has_function a "$(vf_of "$pf" 1)"
expect_contains "the VF has the VLAN of today" "vlan 12" vf_attributes "$netdev" 2
expect_equal "the lease is running" running "$(lease_state a)"
expect "no drift" vfpass status a

section "a saved image whose VF is gone"
expect "managed save" save
expect "detach" vfpass detach a
expect_exit 1 "the restore is refused" start_paused a
expect_equal "no device is touched" mlx5_core "$(driver_of "$(vf_of "$pf" 2)")"
expect "attach" vfpass attach a
expect "a is restored" start_paused a
expect "it has the VF" has_function a "$(vf_of "$pf" 2)"

section "a VF that is not teamed any more"
expect "managed save" save
mapping a rail0 "$pf" 'index: 2' 'mac: "52:54:00:12:34:98"'
expect "attach" vfpass attach a
expect_exit 1 "the restore is refused" start_paused a
expect_said "the reason is printed" "can be replaced"
expect_said "the remedy is printed" "virsh managedsave-remove a"
expect_equal "a is off" "shut off" "$(virsh domstate a)"
expect "the saved image is kept" test -s /var/lib/libvirt/qemu/save/a.save
expect_equal "libvirt knows it" yes "$(virsh dominfo a | sed -n 's/^Managed save: *//p')"
refuse "the refusal is not in the XML of the domain" grep -q refusal <(virsh dumpxml --inactive a)
expect "the remedy" virsh --quiet managedsave-remove a
expect "a starts" start_paused a
stop_hard a
expect "detach" vfpass detach a
expect "no lease" no_lease
finish
