# InfiniBand VFs: GUIDs are set over netlink and through MLNX_OFED's files, and restored. In a guest, vfpass verify sees whether a
# subnet manager has activated the port.
# covers: lab/ofed src/guest/verify/judge_network.* src/doctor/rdma_checks.cpp src/host/sriov/file_ports.* src/host/sriov/configure_vfs.* src/host/sriov/vf_port.* src/plan/choose_addresses.cpp src/config/vf_reader.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

install_vfpass
require "the drivers load, and the InfiniBand PF has its IPoIB netdev" load_mlx5 rdma
pf=$(pf_address 1) netdev=$(pf_netdev 1) ethernet=$(pf_address 0)
start_libvirt
vfpass hook install
define_guest a --rdma
define_guest b
auto='infiniband: {node-guid: auto, port-guid: auto}'

# guids INDEX: node and port GUID, read with iproute2.
guids() {
    vf_attributes "$netdev" "$1" |
        sed -n 's/.*NODE_GUID \([0-9a-f:]*\), PORT_GUID \([0-9a-f:]*\).*/\1 \2/p'
}
all_ones=ff:ff:ff:ff:ff:ff:ff:ff

section "invalid mappings"
make_vfs "$pf" 4
for bad in 00:00:00:00:00:00:00:00 "$all_ones"; do
    mapping a rail0 "$pf" "infiniband: {node-guid: auto, port-guid: \"$bad\"}"
    expect_exit 2 "port GUID $bad" vfpass attach a
    expect_said "the error has the position and the reason" "a.yaml:6:46: a GUID of all zeros or all ones is invalid"
done
mapping a rail0 "$ethernet" "$auto"
expect_exit 2 "GUIDs on an Ethernet PF" vfpass attach a
expect_said "the error names the link layer" "the link of PF $ethernet is ethernet"
mapping a rail0 "$pf" 'vlan: {id: 5}'
expect_exit 2 "a VLAN on an InfiniBand PF" vfpass attach a
expect_said "the reason is printed" "is InfiniBand, which has neither"
mapping a rail0 "$pf" 'interface: true'
expect_exit 2 "<interface> on an InfiniBand PF" vfpass attach a
expect_said "the reason is printed" "IPoIB has no MAC to set"
expect "no lease is left" no_lease

section "attach of a VF with GUIDs and of a VF without"
ip link set dev "$netdev" vf 1 node_guid 02:00:00:00:00:00:0b:01
ip link set dev "$netdev" vf 1 port_guid 02:00:00:00:00:00:0b:02
snapshot_host /tmp/host.before "$pf"
mapping a rail0 "$pf" 'index: 1' "$auto"
mapping b rail0 "$pf" 'index: 2' "$auto"
expect "attach a" vfpass attach a
a_guids=$(guids 1)
expect "both GUIDs are locally administered and not multicast" \
    grep -qE '^.[26ae]:[0-9a-f:]{20} .[26ae]:[0-9a-f:]{20}$' <<<"$a_guids"
expect "the link follows the port" grep -q "link-state auto" <<<"$(vf_attributes "$netdev" 1)"
expect "attach b" vfpass attach b
b_guids=$(guids 2)
expect_equal "four GUIDs, all different" 4 "$(tr ' ' '\n' <<<"$a_guids $b_guids" | sort -u | wc -l)"
expect "a second attach changes nothing" vfpass attach a
expect_equal "the GUIDs are unchanged" "$a_guids" "$(guids 1)"
expect "detach b" vfpass detach b
expect_equal "GUIDs that were not set before become all ones" "$all_ones $all_ones" "$(guids 2)"

section "a runs"
expect "start a" virsh start a
port_guid=${a_guids#* }
expect_equal "the VF has the GUIDs" "$a_guids" "$(guids 1)"
expect "status reports no drift" vfpass status a

section "a guest needs a subnet manager"
# verify_json [OPTION...]: for verified.
verify_json() { vfpass verify a --json --bytes 4K --iterations 16 --no-tools --relaxed-ordering off --timeout 600 "$@" 2>/tmp/verify.log; }
pf_state() { cat "/sys/bus/pci/devices/$pf"/infiniband/*/ports/1/state; }
# Other checks of doctor may fail.
pf_link() { { vfpass doctor --json || :; } | jq -r '.findings[] | select(.key == "pf-link") | .result + ": " + .remedy'; }
expect "the guest's agent answers" wait_for_agent a 400
expect "its driver is bound to the VF" wait_until 120 guest_drives a 1
has_rdma_device() { guest_shell a 'ls /sys/class/infiniband/*/ports/1/state'; }
expect "it has an RDMA device" wait_until 120 has_rdma_device
card 1 subnet-manager down >/dev/null
expect_equal "the PF's port waits for one" "2: INIT" "$(pf_state)"
expect_contains "doctor names it" "failed: start a subnet manager" pf_link
verified 4 "verify"
broken port "DOWN"
expect_contains "the remedy is a subnet manager" "start a subnet manager (opensm)" finding port remedy
card 1 subnet-manager up >/dev/null
expect_equal "the PF's port is active" "4: ACTIVE" "$(pf_state)"
verified 0 "verify passes"
expect_contains "the port has a LID" "LID 3, subnet manager's LID 1" finding port seen
expect_equal "it is in the default partition" "passed 0xffff" "$(finding p-key result) $(finding p-key seen)"
expect_contains "its RDMA device has the port GUID of the lease" "$port_guid" finding rdma-device expected
expect_equal "the data is correct, and the host has counted it" "passed passed" \
    "$(finding data-host result) $(finding counters result)"

section "a GUID that is changed while a runs"
ip link set dev "$netdev" vf 1 port_guid 02:00:00:00:00:00:0c:0c
expect_exit 3 "a GUID that was changed is drift" vfpass status a
expect_said "status names the GUID" "port-guid is 02:00:00:00:00:00:0c:0c, attach set $port_guid"
ip link set dev "$netdev" vf 1 port_guid 00:00:00:00:00:00:00:00
expect "a GUID that cannot be read is no drift" vfpass status a
expect_said "status reports the GUID as not observable" "not observable: a rail0: the kernel does not report port-guid"
virsh destroy a >/dev/null
expect "the lease is reserved" wait_until 20 has_lease reserved
expect_equal "the GUIDs are all ones while the VM is off" "$all_ones $all_ones" "$(guids 1)"
expect "detach a" vfpass detach a
expect_equal "the recorded GUIDs are restored" "02:00:00:00:00:00:0b:01 02:00:00:00:00:00:0b:02" "$(guids 1)"
expect "attach a again" vfpass attach a
expect_equal "attach sets the same GUIDs" "$a_guids" "$(guids 1)"
expect "detach a" vfpass detach a

section "managed: yes keeps the VF on the host's driver, which reads the GUIDs when it probes"
mapping a rail0 "$pf" 'index: 1' 'managed: yes' "$auto"
vf=$(vf_of "$pf" 1)
# The netdev keeps the GUID that its driver read when it probed.
host_port_guid() { ip -o link show dev "$(netdev_of "$vf")" | grep -q "$1"; }
expect "the host's driver has the recorded GUID" wait_until 60 host_port_guid 02:00:00:00:00:00:0b:02
expect "attach" vfpass attach a
expect "the VF is bound to the host's driver" test "$(driver_of "$vf")" = mlx5_core
expect "the host's netdev has the new GUID" wait_until 60 host_port_guid "$port_guid"
expect "detach" vfpass detach a
expect "the host's netdev has the old GUID after detach" wait_until 60 host_port_guid 02:00:00:00:00:00:0b:02

section "a firmware that refuses GUIDs"
mapping a rail0 "$pf" 'index: 1' "$auto"
ip link set dev "$netdev" vf 1 state auto
snapshot_host /tmp/host.before "$pf"
# bad_operation and internal_error: what the firmware does not know, and what it fails to do.
for status in 2 1; do
    card 1 fault MODIFY_HCA_VPORT_CONTEXT "status=$status" >/dev/null
    expect_exit 1 "attach with status $status" vfpass attach a
    expect_said "the error names attribute and driver" "driver mlx5_core cannot set node-guid of VF 1"
    card 1 clear >/dev/null
    snapshot_host /tmp/host.after "$pf"
    expect_same_file "the host is unchanged" /tmp/host.before /tmp/host.after
    expect "no lease is left" no_lease
done

section "without IPoIB there is neither netlink nor a counter"
modprobe -r ib_ipoib
expect_exit 1 "attach" vfpass attach a
expect_said "the error names ib_ipoib" "modprobe ib_ipoib"
expect "no lease is left" no_lease

section "MLNX_OFED's files accept GUIDs without netlink"
expect "the files are added" insmod /lab/build/ofed/ofed_files.ko "pf=$pf"
files=/sys/bus/pci/devices/$pf/sriov/1
expect "the files exist and are writable" test -w "$files/node" -a -w "$files/port" -a -w "$files/policy"
before=$(cat "$files"/{node,port,policy})
expect_equal "they show what was set over netlink" \
    "02:00:00:00:00:00:0b:01 02:00:00:00:00:00:0b:02 Follow" "$(xargs <<<"$before")"
expect "attach" vfpass attach a
expect_equal "node and port GUID are set" "${a_guids/ /$'\n'}" "$(cat "$files"/{node,port})"
expect_equal "the policy follows the port" Follow "$(cat "$files/policy")"
expect "status reports no drift" vfpass status a
expect "detach" vfpass detach a
expect_equal "GUIDs and policy are restored" "$before" "$(cat "$files"/{node,port,policy})"
card 1 fault MODIFY_HCA_VPORT_CONTEXT status=2 >/dev/null
expect_exit 1 "attach with a firmware that refuses" vfpass attach a
expect_said "the error names attribute and driver" "driver mlx5_core cannot set node-guid of VF 1"
card 1 clear >/dev/null
expect_equal "GUIDs and policy are unchanged" "$before" "$(cat "$files"/{node,port,policy})"
expect "no lease is left" no_lease
finish
