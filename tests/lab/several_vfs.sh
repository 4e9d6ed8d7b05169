# Three VFs of two PFs, one of them InfiniBand, in one guest; and VFs of which libvirt does a part:
# managed: yes, <interface>.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_standin "infiniband_pfs=$(pf_address 1)"
pf=$(pf_address 0) netdev=$(pf_netdev 0) other=$(pf_address 1) other_netdev=$(pf_netdev 1)
make_vfs "$pf" 4
make_vfs "$other" 2
# GUIDs that nobody has set cannot be recorded; after a lease they would be all ones.
ip link set dev "$other_netdev" vf 1 node_guid 02:00:00:00:00:00:0b:01
ip link set dev "$other_netdev" vf 1 port_guid 02:00:00:00:00:00:0b:02
start_libvirt
vfpass hook install
define_guest train0
settle train0

# A device that only just left a guest may keep libvirt busy for a moment.
stopped() {
    virsh destroy train0 >/dev/null
    expect "the lease is reserved" wait_until 20 eval 'leases | grep -q reserved && ! leases | grep -q running'
}
keep() {
    snapshot_host /tmp/host.before "$pf" "$other"
    virsh dumpxml --inactive --security-info train0 >/tmp/xml.before
}
unchanged() {
    snapshot_host /tmp/host.after "$pf" "$other"
    virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
    expect_same_file "$1: the host is as before" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is as before" /tmp/xml.before /tmp/xml.after
    expect "$1: no lease" no_lease
}
mac_of() { vf_attributes "$1" "$2" | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p'; }

section "three VFs of two PFs: attach and start"
keep
cat >"$vms/train0.yaml" <<YAML
version: 1
vm: train0
vfs:
  - {name: rail0, pf: {pci: "$pf"}, vlan: {id: 10}}
  - {name: rail1, pf: {pci: "$pf"}, vlan: {id: 11}}
  - {name: rail2, pf: {pci: "$other"}, index: 1, infiniband: {node-guid: auto, port-guid: auto}}
YAML
expect "attach" vfpass attach train0
expect_contains "VF 0 has its VLAN" "vlan 10" vf_attributes "$netdev" 0
expect_contains "VF 1 has its VLAN" "vlan 11" vf_attributes "$netdev" 1
first=$(mac_of "$netdev" 0) second=$(mac_of "$netdev" 1)
expect_equal "two MACs, both locally administered" 2 \
    "$(printf '%s\n' "$first" "$second" | sort -u | grep -c '^.[26ae]:')"
guids=$(vf_attributes "$other_netdev" 1 |
    sed -n 's/.*NODE_GUID \([0-9a-f:]*\), PORT_GUID \([0-9a-f:]*\).*/node_guid=\1 port_guid=\2/p')
expect "VF 1 of the other PF has GUIDs" grep -q 'node_guid=.[26ae]:.* port_guid=.[26ae]:' <<<"$guids"
expect "a second attach has nothing to do" vfpass attach train0
expect "start" virsh start train0
expect_equal "three leases run" 3 "$(leases | grep -c running)"
expect "the agent answers" wait_for_agent train0 400
# Each alone at slot 0, function 0, behind a port of its own; one line for each device.
guest_shell train0 "for file in /sys/bus/pci/devices/*:00.0/vport; do tr '\n' ' ' <\$file; echo; done" \
    >/tmp/vports
expect_equal "the guest has three" 3 "$(grep -c flavour= /tmp/vports)"
expect "the first, in its VLAN" grep -q "mac=$first .*vlan=10 " /tmp/vports
expect "the second, in its VLAN" grep -q "mac=$second .*vlan=11 " /tmp/vports
expect "the InfiniBand one, with both GUIDs" grep -q "flavour=infiniband .*$guids " /tmp/vports
stopped
refuse "both VLANs are gone" grep -qE 'vlan 1[01]' \
    <(vf_attributes "$netdev" 0; vf_attributes "$netdev" 1)
expect_contains "the GUIDs are all ones" "PORT_GUID ff:ff:ff:ff:ff:ff:ff:ff" \
    vf_attributes "$other_netdev" 1
expect "detach" vfpass detach train0
unchanged "three VFs"

section "managed: yes: libvirt binds"
# A VF that this libvirtd has not seen unmanaged: it would take it for that until its next restart.
vf=$(vf_of "$pf" 3)
mapping train0 rail0 "$pf" 'index: 3' 'managed: yes' 'vlan: {id: 100}'
echo 0 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
expect_exit 5 "refused while probing is off" vfpass attach train0
expect_said "the reason" "probing of VFs is off on PF $pf"
expect_said "the remedy" "echo 1 > /sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
echo 1 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
expect "attach" vfpass attach train0
expect_contains "the VLAN is set" "vlan 100" vf_attributes "$netdev" 3
expect_equal "the driver is left alone" mlx5_core "$(driver_of "$vf")"
expect_contains "the XML says managed" "managed='yes'" sh -c \
    "virsh dumpxml --inactive train0 | grep \"<hostdev\""
expect "a second attach has nothing to do" vfpass attach train0
expect "start" virsh start train0
expect_equal "libvirt has bound it" vfio-pci "$(driver_of "$vf")"
expect "status sees no drift" vfpass status train0
stopped
expect_equal "libvirt has given it back" mlx5_core "$(driver_of "$vf")"
expect "detach" vfpass detach train0
unchanged "managed"

section "interface: true: MAC and VLAN are libvirt's"
ip link set dev "$netdev" vf 1 mac 02:aa:00:00:00:01 vlan 77
keep
for bad in '{id: 100, qos: 3}' '{id: 100, protocol: 802.1ad}'; do
    mapping train0 rail0 "$pf" 'index: 1' 'interface: true' "vlan: $bad"
    expect_exit 2 "VLAN $bad" vfpass attach train0
    expect_said "the place and the reason" "train0.yaml:7:16: an <interface> carries no VLAN priority and no 802.1ad"
done
mapping train0 rail0 "$pf" 'index: 1' 'interface: true' 'vlan: {id: 100}' 'trust: true'
echo 'allow: [trust]' >>"$vms/train0.yaml"
ip link set dev "$netdev" down
expect_exit 5 "refused while the PF is down" vfpass attach train0
expect_said "the reason" "$netdev is down"
ip link set dev "$netdev" up
expect "attach" vfpass attach train0
expect_contains "the XML has an <interface>" "<interface type='hostdev'" virsh dumpxml --inactive train0
expect_contains "vfpass set what libvirt does not" "trust on" vf_attributes "$netdev" 1
expect_contains "and left MAC and VLAN alone" "02:aa:00:00:00:01 brd ff:ff:ff:ff:ff:ff, vlan 77" \
    vf_attributes "$netdev" 1
expect "a second attach has nothing to do" vfpass attach train0
expect "plan, too" vfpass plan train0
expect "start" virsh start train0
expect_contains "libvirt set the VLAN" "vlan 100" vf_attributes "$netdev" 1
expect_contains "and the MAC of the XML" "$(mac_of "$netdev" 1)" virsh dumpxml train0
expect "status sees no drift" vfpass status train0
stopped
expect_contains "libvirt put both back" "02:aa:00:00:00:01 brd ff:ff:ff:ff:ff:ff, vlan 77" \
    vf_attributes "$netdev" 1
expect_contains "and vfpass scrubbed the rest" "trust off" vf_attributes "$netdev" 1
expect "detach" vfpass detach train0
unchanged "interface"
finish
