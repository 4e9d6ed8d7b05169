# The main task: VFs move from mlx5_core into a guest and back, while it is off and while it runs, and everything
# is restored. Then the power is cut; round_trip_after_reboot.sh continues.
# covers: src/commands/attach_command.cpp src/commands/detach_command.cpp src/hook src/libvirt src/apply
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

section "a host in use: VFs on mlx5_core with MAC and VLAN, and a q35 domain with a password"
install_vfpass
require "the drivers load, and the InfiniBand PF has its IPoIB netdev" load_mlx5 rdma
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
define_with train0 "$foreign" --rdma
settle train0
virsh dumpxml --inactive --security-info train0 | tee /lab/state/xml.before >/tmp/xml.before
snapshot_host /tmp/host.before "$pf" "$other"
expect_contains "the domain has a VNC password" "passwd='" cat /tmp/xml.before
expect_contains "the domain has a foreign hostdev" "hostdev" cat /tmp/xml.before
expect_equal "the domain has one root port, which the foreign device uses" 1 \
    "$(grep -c "model='pcie-root-port'" /tmp/xml.before)"

section "check and plan report pending changes and change nothing"
mapping train0 rail0 "$pf" 'index: 2' 'vlan: {id: 100, qos: 1}' 'trust: false' 'spoof-check: true'
expect "check accepts the mapping" vfpass check train0
expect_exit 3 "plan shows the steps" vfpass plan train0
expect_said "plan shows the hostdev" "ua-vfpass-rail0"
vfpass plan train0 >/tmp/plan
refuse "plan does not print the VNC password" grep -q lab-pass /tmp/plan
snapshot_host /tmp/host.after "$pf" "$other"
expect_same_file "the host is unchanged" /tmp/host.before /tmp/host.after

section "attach of four VFs of two PFs: plain, InfiniBand, and libvirt's <interface>"
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
mac_of() { vf_attribute 0 "$1" address; }
mac=$(mac_of 2)
expect "the MAC is locally administered" grep -qE '^.[26ae]:' <<<"$mac"
expect_contains "index auto chooses the first free VF" "vlan 101" vf_attributes "$netdev" 0
second_mac=$(mac_of 0)
# Sets node_guid and port_guid.
read -r node_guid port_guid < <(vf_attributes "$other_netdev" 1 |
    sed -n 's/.*NODE_GUID \([0-9a-f:]*\), PORT_GUID \([0-9a-f:]*\).*/\1 \2/p')
expect "the InfiniBand VF has GUIDs" grep -qE '^.[26ae]:.{20} .[26ae]:.{20}$' <<<"$node_guid $port_guid"
expect_contains "the link of the InfiniBand VF follows the port" "link-state auto" vf_attributes "$other_netdev" 1
expect "autoprobe is restored" test "$(cat "/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe")" = 1
virsh dumpxml --inactive --security-info train0 >/tmp/xml.first
expect "a second attach succeeds" vfpass attach train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.second
expect_same_file "the XML is unchanged, byte for byte" /tmp/xml.first /tmp/xml.second
expect "plan has no changes" vfpass plan train0
expect "status reports no drift" vfpass status train0

section "start through the hook"
expect "virsh start" virsh start --paused train0
expect_equal "four leases are running" 4 "$(leases | grep -c running)"
expect_contains "the VF still has its VLAN" "vlan 100" vf_attributes "$netdev" 2
expect "attach to the running domain changes nothing" vfpass attach train0
expect_exit 6 "detach is refused while the guest does not run yet and cannot answer" vfpass detach train0
expect "virsh resume" virsh resume train0
expect "the guest's agent answers" wait_for_agent train0 400
# sysfs_form GUID: as the files of an RDMA device show it.
sysfs_form() { tr -d : <<<"$1" | sed 's/..../&:/g; s/:$//'; }
# list_functions: a line for each function that the guest's mlx5_core drives: link layer, the addresses of its netdevs, node
# GUID and GID of its RDMA device.
# shellcheck disable=SC2016  # the guest's shell expands it
list_functions() {
    guest_shell train0 'for device in /sys/bus/pci/drivers/mlx5_core/0*; do
        port=$device/infiniband/*/ports/1
        echo $(cat $port/link_layer $device/net/*/address $device/infiniband/*/node_guid $port/gids/0 2>/dev/null)
    done'
}
all_are_ready() {
    list_functions >/tmp/functions && test "$(grep -cE '^(Ethernet [0-9a-f:]{17} |InfiniBand .* fe80:)' /tmp/functions)" = 5
}
# guest_has_all VLAN: the guest has each VF with its addresses. It does not see the VLANs, whose tags the card adds and removes.
guest_has_all() {
    expect "the guest's drivers are bound to five functions" wait_until 240 all_are_ready
    sed 's/^/   /' /tmp/functions
    expect "the guest has the first VF" grep -q "^Ethernet $mac " /tmp/functions
    expect "the guest has the second VF" grep -q "^Ethernet $second_mac " /tmp/functions
    expect "the guest has the <interface>" grep -q "^Ethernet $third_mac " /tmp/functions
    expect "the guest has the InfiniBand VF, with both GUIDs" \
        grep -q "^InfiniBand .* $(sysfs_form "$node_guid") fe80:0000:0000:0000:$(sysfs_form "$port_guid")" /tmp/functions
    expect_contains "the first VF is in VLAN $1" "vlan $1, qos 1" vf_attributes "$netdev" 2
    expect_contains "the second VF is in its VLAN" "vlan 101" vf_attributes "$netdev" 0
    expect_contains "the <interface> is in the VLAN that libvirt set" "vlan 103" vf_attributes "$netdev" 3
}
third_mac=$(mac_of 3)
guest_has_all 100

section "detach from the running guest restores everything while it runs"
places() { virsh dumpxml "$@" train0 | grep -A1 "ua-vfpass-rail.'" | grep -o "bus='0x[0-9a-f]*'" | paste -sd' '; }
expect_equal "the running domain has four devices" 4 "$(places | wc -w)"
expect_equal "the devices have the same addresses in the inactive XML" "$(places --inactive)" "$(places)"
# Removes the generations, which change with a second attach, and the seal, which covers them.
without_generations() { sed -i -e 's/"generation":[0-9]*,//' -e 's/ seal="[0-9a-f]*"//' "$@"; }
virsh dumpxml --inactive --security-info train0 >/tmp/xml.first
expect "detach" vfpass detach train0
expect "no lease is left" no_lease
# Root ports cannot be unplugged: they stay until the guest stops, and the next attach uses them.
refuse "the running domain has no device of ours" grep -q "ua-vfpass-rail" <(virsh dumpxml train0)
refuse "the running domain does not have our metadata" grep -q "vfpass:domain" <(virsh dumpxml train0)
expect "the guest keeps running" guest_running train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
snapshot_host /tmp/host.after "$pf" "$other"
expect_same_file "the XML is restored, byte for byte" /tmp/xml.before /tmp/xml.after
# The running guest uses the foreign device, which libvirt has bound to vfio-pci.
grep -v "^VF $foreign:" /tmp/host.before >/tmp/host.ours
sed -i "/^VF $foreign:/d" /tmp/host.after
expect_same_file "the host is restored" /tmp/host.ours /tmp/host.after

section "attach to the running guest"
expect "attach" vfpass attach train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.second
without_generations /tmp/xml.first /tmp/xml.second
expect_same_file "the inactive XML is the same as after the first attach" /tmp/xml.first /tmp/xml.second
expect_equal "the devices have the same addresses in the running and the inactive XML" "$(places --inactive)" "$(places)"
expect_equal "four leases are running" 4 "$(leases | grep -c running)"
guest_has_all 100
expect "status reports no drift" vfpass status train0

section "a changed mapping is drift until the next attach"
sed -i 's/{id: 100, qos: 1}/{id: 200, qos: 1}/' "$vms/train0.yaml"
expect_exit 3 "status" vfpass status train0
expect_said "status shows the difference" "vlan 200"
expect "attach" vfpass attach train0
expect_contains "the VLAN takes effect at once" "vlan 200, qos 1" vf_attributes "$netdev" 2
expect "status reports no drift" vfpass status train0

section "power cut"
vf_attributes "$netdev" 2 >/lab/state/rail0
vf_attributes "$netdev" 0 >/lab/state/rail1
vf_attributes "$other_netdev" 1 >/lab/state/rail2
save_state
finish
