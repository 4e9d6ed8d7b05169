# The main job: VFs go from mlx5_core into a guest and back, cold and while it runs, and everything is
# as found. Then the power is cut; round_trip_after_reboot.sh goes on from there.
# covers: src/cli/attach.cpp src/cli/detach.cpp src/hook src/hypervisor src/apply
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

section "a host in use: VFs on mlx5_core with MAC and VLAN of their own, a q35 domain with secrets"
install_vfpass
load_standin "infiniband_pfs=$(pf_address 1)"
pf=$(pf_address 0) netdev=$(pf_netdev 0)
other=$(pf_address 1) other_netdev=$(pf_netdev 1)
make_vfs "$pf" 4
make_vfs "$other" 2
# libvirt starts an <interface> only while its PF is up.
ip link set dev "$netdev" up
ip link set dev "$netdev" vf 2 mac 02:aa:00:00:00:02 vlan 77 qos 3
ip link set dev "$netdev" vf 2 spoofchk on
ip link set dev "$other_netdev" vf 1 node_guid 02:00:00:00:00:00:0b:01
ip link set dev "$other_netdev" vf 1 port_guid 02:00:00:00:00:00:0b:02
foreign=$(vf_of "$other" 0)
start_libvirt
define_with train0 "$foreign"
settle train0
virsh dumpxml --inactive --security-info train0 | tee /lab/state/xml.before >/tmp/xml.before
snapshot_host /tmp/host.before "$pf" "$other"
expect_contains "the domain has a VNC password" "passwd='" cat /tmp/xml.before
expect_contains "the domain has a foreign hostdev" "hostdev" cat /tmp/xml.before
expect_equal "the domain has no spare port: one, which the foreign device uses" 1 \
    "$(grep -c "model='pcie-root-port'" /tmp/xml.before)"

section "check and plan change nothing and say that changes are pending"
mapping train0 rail0 "$pf" 'index: 2' 'vlan: {id: 100, qos: 1}' 'trust: false' 'spoof-check: true'
expect_exit 3 "check says that changes are pending" vfpass check train0
expect_exit 3 "plan shows the steps" vfpass plan train0
expect_said "plan shows the hostdev" "ua-vfpass-rail0"
vfpass plan train0 >/tmp/plan
refuse "plan keeps the VNC password to itself" grep -q lab-pass /tmp/plan
snapshot_host /tmp/host.after "$pf" "$other"
expect_same_file "the host is untouched" /tmp/host.before /tmp/host.after

section "attach, four VFs of two PFs: plain, InfiniBand, and one as libvirt's own <interface>"
cat >>"$vms/train0.yaml" <<YAML
  - {name: rail1, pf: {pci: "$pf"}, vlan: {id: 101}}
  - {name: rail2, pf: {pci: "$other"}, index: 1, infiniband: {node-guid: auto, port-guid: auto}}
  - {name: rail3, pf: {pci: "$pf"}, index: 3, interface: true, vlan: {id: 103}}
YAML
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
vf=$(vf_of "$pf" 2)
expect "the VF is on vfio-pci" test "$(driver_of "$vf")" = vfio-pci
expect_contains "VLAN and priority are set" "vlan 100, qos 1" vf_attributes "$netdev" 2
mac=$(vf_attributes "$netdev" 2 | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p')
expect "the MAC is locally administered" grep -qE '^.[26ae]:' <<<"$mac"
expect_contains "auto takes the first free VF" "vlan 101" vf_attributes "$netdev" 0
second_mac=$(vf_attributes "$netdev" 0 | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p')
guids=$(vf_attributes "$other_netdev" 1 |
    sed -n 's/.*NODE_GUID \([0-9a-f:]*\), PORT_GUID \([0-9a-f:]*\).*/node_guid=\1 port_guid=\2/p')
expect "the InfiniBand VF has GUIDs" grep -q 'node_guid=.[26ae]:.* port_guid=.[26ae]:' <<<"$guids"
expect "autoprobe is as it was" test "$(cat "/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe")" = 1
virsh dumpxml --inactive --security-info train0 >/tmp/xml.first
expect "a second attach succeeds" vfpass attach train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.second
expect_same_file "and leaves the XML byte for byte" /tmp/xml.first /tmp/xml.second
expect "plan has nothing to do" vfpass plan train0
expect "status sees no drift" vfpass status train0

section "start through the hook"
expect "virsh start" virsh start train0
expect_equal "four leases run" 4 "$(leases | grep -c running)"
expect_contains "the VF still has its VLAN" "vlan 100" vf_attributes "$netdev" 2
expect "attach to the running domain has nothing to do" vfpass attach train0
expect_exit 6 "detach asks the running guest, which does not answer yet" vfpass detach train0
expect "the guest's agent answers" wait_for_agent train0 400
expect_contains "the guest has the function with the leased MAC, driven" "vport" in_guest train0 "$mac"
expect_contains "whose PF has it in VLAN 100" "vlan=100" \
    guest_exec train0 cat "$(in_guest train0 "$mac")"
# guest_has_all: the guest sees each VF with its values. One line for each function; ours are alone at
# slot 0 behind a port of their own.
guest_has_all() {
    guest_shell train0 "for file in /sys/bus/pci/devices/*:00.0/vport; do tr '\n' ' ' <\$file; echo; done" \
        >/tmp/vports
    expect "the guest has the first, in VLAN $1" grep -q "mac=$mac .*vlan=$1 " /tmp/vports
    expect "the second, in its VLAN" grep -q "mac=$second_mac .*vlan=101 " /tmp/vports
    expect "the InfiniBand one, with both GUIDs" grep -q "flavour=infiniband .*$guids " /tmp/vports
    expect "and the <interface>, in the VLAN that libvirt set" grep -q "vlan=103 " /tmp/vports
}
guest_has_all 100

section "detach from the running guest: everything as found while it runs"
places() { virsh dumpxml "$@" train0 | grep -A1 "ua-vfpass-rail.'" | grep -o "bus='0x[0-9a-f]*'" | paste -sd' '; }
expect_equal "four devices" 4 "$(places | wc -w)"
expect_equal "each where the configuration has it" "$(places --inactive)" "$(places)"
# What a second attach gives a new number to.
# The seal is one of the generations, too.
without_generations() { sed -i -e 's/ generation="[0-9]*"//' -e 's/ seal="[0-9a-f]*"//' "$@"; }
virsh dumpxml --inactive --security-info train0 >/tmp/xml.first
expect "detach" vfpass detach train0
expect "no lease is left" no_lease
# Root ports cannot be unplugged: they stay until the guest stops, and take the next attach.
refuse "the running domain has no device of ours" grep -q "ua-vfpass-rail" <(virsh dumpxml train0)
refuse "nor is it known to be managed" grep -q "vfpass:domain" <(virsh dumpxml train0)
expect "the guest runs on" guest_running train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
snapshot_host /tmp/host.after "$pf" "$other"
expect_same_file "its XML is byte for byte as it was" /tmp/xml.before /tmp/xml.after
# The foreign device is the guest's, and libvirt has it on vfio-pci.
grep -v "^VF $foreign:" /tmp/host.before >/tmp/host.ours
sed -i "/^VF $foreign:/d" /tmp/host.after
expect_same_file "and so is the host" /tmp/host.ours /tmp/host.after

section "attach to the running guest"
expect "attach" vfpass attach train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.second
without_generations /tmp/xml.first /tmp/xml.second
expect_same_file "the configuration is as the first attach made it" /tmp/xml.first /tmp/xml.second
expect_equal "the running domain has all where its next start will" "$(places --inactive)" "$(places)"
expect_equal "four leases run" 4 "$(leases | grep -c running)"
expect "the guest's driver has them, and probes again" reprobe_in_guest train0 5
guest_has_all 100
expect "status sees no drift" vfpass status train0

section "an edited mapping is drift until the next attach"
sed -i 's/{id: 100, qos: 1}/{id: 200, qos: 1}/' "$vms/train0.yaml"
expect_exit 3 "status" vfpass status train0
expect_said "the difference" "vlan 200"
expect "attach" vfpass attach train0
expect_contains "the VLAN counts at once" "vlan 200, qos 1" vf_attributes "$netdev" 2
expect "status sees no drift" vfpass status train0

section "the power is cut"
vf_attributes "$netdev" 2 >/lab/state/rail0
vf_attributes "$netdev" 0 >/lab/state/rail1
vf_attributes "$other_netdev" 1 >/lab/state/rail2
save_state
finish
