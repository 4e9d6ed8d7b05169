# VFs that libvirt partly manages: managed: yes, and <interface>.
# covers: src/domain/our_elements.* src/domain/device_xml.* src/plan/device_steps.* templates src/hook
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
# libvirt needs /dev/vfio/vfio, a static node that systemd creates on a host; the lab has no systemd.
modprobe vfio-pci
start_libvirt
vfpass hook install
define_guest train0
settle train0

# The hook's release runs after virsh has returned.
stopped() {
    virsh destroy train0 >/dev/null
    expect "the lease is reserved" wait_until 20 eval 'leases | grep -q reserved && ! leases | grep -q running'
}
keep() {
    snapshot_host /tmp/host.before "$pf"
    virsh dumpxml --inactive --security-info train0 >/tmp/xml.before
}
unchanged() {
    snapshot_host /tmp/host.after "$pf"
    virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
    expect_same_file "$1: the host is restored" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is restored" /tmp/xml.before /tmp/xml.after
    expect "$1: no lease" no_lease
}
mac_of() { vf_attributes "$1" "$2" | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p'; }

section "managed: yes, libvirt binds the VF"
keep
# Uses a VF that this libvirtd has not seen as unmanaged; it would treat it as unmanaged until its next restart.
vf=$(vf_of "$pf" 3)
mapping train0 rail0 "$pf" 'index: 3' 'managed: yes' 'vlan: {id: 100}'
echo 0 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
expect_exit 5 "attach is refused while probing is off" vfpass attach train0
expect_said "the reason is printed" "probing of VFs is off on PF $pf"
expect_said "the remedy is printed" "echo 1 > /sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
echo 1 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
expect "attach" vfpass attach train0
expect_contains "the VLAN is set" "vlan 100" vf_attributes "$netdev" 3
expect_equal "the driver is unchanged" mlx5_core "$(driver_of "$vf")"
expect_contains "the XML has managed='yes'" "managed='yes'" sh -c \
    "virsh dumpxml --inactive train0 | grep \"<hostdev\""
expect "a second attach changes nothing" vfpass attach train0
expect "start" virsh start train0
expect_equal "libvirt has bound the VF to vfio-pci" vfio-pci "$(driver_of "$vf")"
expect "status reports no drift" vfpass status train0
stopped
expect_equal "libvirt has rebound the VF to its driver" mlx5_core "$(driver_of "$vf")"
expect "detach" vfpass detach train0
unchanged "managed"

section "interface: true, libvirt sets MAC and VLAN"
ip link set dev "$netdev" vf 1 mac 02:aa:00:00:00:01 vlan 77
keep
for bad in '{id: 100, qos: 3}' '{id: 100, protocol: 802.1ad}'; do
    mapping train0 rail0 "$pf" 'index: 1' 'interface: true' "vlan: $bad"
    expect_exit 2 "VLAN $bad" vfpass attach train0
    expect_said "the error has the position and the reason" "train0.yaml:7:16: an <interface> supports neither VLAN priority nor 802.1ad"
done
mapping train0 rail0 "$pf" 'index: 1' 'interface: true' 'vlan: {id: 100}' 'trust: true'
echo 'allow: [trust]' >>"$vms/train0.yaml"
ip link set dev "$netdev" down
expect_exit 5 "attach is refused while the PF is down" vfpass attach train0
expect_said "the reason is printed" "$netdev is down"
ip link set dev "$netdev" up
expect "attach" vfpass attach train0
expect_contains "the XML has an <interface>" "<interface type='hostdev'" virsh dumpxml --inactive train0
expect_contains "vfpass sets the attributes that libvirt does not set" "trust on" vf_attributes "$netdev" 1
expect_contains "vfpass leaves MAC and VLAN unchanged" "02:aa:00:00:00:01 brd ff:ff:ff:ff:ff:ff, vlan 77" \
    vf_attributes "$netdev" 1
expect "a second attach changes nothing" vfpass attach train0
expect "plan has no changes" vfpass plan train0
expect "start" virsh start train0
expect_contains "libvirt sets the VLAN" "vlan 100" vf_attributes "$netdev" 1
expect_contains "libvirt sets the MAC of the XML" "$(mac_of "$netdev" 1)" virsh dumpxml train0
expect "status reports no drift" vfpass status train0
stopped
expect_contains "libvirt restores MAC and VLAN" "02:aa:00:00:00:01 brd ff:ff:ff:ff:ff:ff, vlan 77" \
    vf_attributes "$netdev" 1
expect_contains "vfpass scrubs the other attributes" "trust off" vf_attributes "$netdev" 1
expect "detach" vfpass detach train0
unchanged "interface"

section "interface: true, edited: libvirt would apply the edit, so the hook refuses the start"
keep
mapping train0 rail0 "$pf" 'index: 1' 'interface: true' 'mac: 02:aa:00:00:00:21' 'vlan: {id: 100}'
expect "attach" vfpass attach train0
virsh dumpxml --inactive --security-info train0 >/tmp/attached.xml
# edited TITLE SED_SCRIPT TEXT: edits the <interface> of the VF as `virsh edit` does.
edited() {
    sed "/<interface type='hostdev'/,/<\/interface>/{$2;}" /tmp/attached.xml >/tmp/edited.xml
    require "$1: libvirt accepts the edit" virsh --quiet define /tmp/edited.xml
    refuse "$1: it keeps the edit" cmp -s /tmp/attached.xml <(virsh dumpxml --inactive --security-info train0)
    expect_exit 1 "$1: the start is refused" virsh start train0
    expect_said "$1: the difference is named" "$3"
    expect_said "$1: the remedy is printed" "vfpass attach train0"
    expect_contains "$1: the VF is unchanged" "02:aa:00:00:00:01 brd ff:ff:ff:ff:ff:ff, vlan 77" vf_attributes "$netdev" 1
}
edited "VLAN" "s/<tag id='100'/<tag id='200'/" "the XML has id='200' in <tag>, the lease records id='100'"
edited "no VLAN" "/<vlan>/,/<\/vlan>/d" "the XML has no <vlan>"
edited "MAC" "s/02:aa:00:00:00:21/02:aa:00:00:00:22/" "the XML has address='02:aa:00:00:00:22' in <mac>"
edited "libvirt's binding" "s/<interface type='hostdev'/<interface type='hostdev' managed='yes'/" "managed='yes'"
edited "a file as the VF's ROM" "s|<vlan>|<rom file='/etc/hostname'/><vlan>|" "the XML has <rom>, the lease records none"
expect_exit 3 "status" vfpass status train0
expect_said "status names the difference" "XML: VF 'rail0': the XML has <rom>"
expect "attach repairs the XML" vfpass attach train0
expect "start" virsh start train0
expect_contains "the VF has its own MAC and VLAN" "02:aa:00:00:00:21 brd ff:ff:ff:ff:ff:ff, vlan 100" \
    vf_attributes "$netdev" 1
expect "status reports no drift" vfpass status train0
stopped
expect "detach" vfpass detach train0
unchanged "edited interface"
finish
