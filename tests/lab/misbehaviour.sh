# Every way in which the stand-in can misbehave, and PFs that change their name or go away.
# covers: src/host src/apply lab/module
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_standin
pf=$(pf_address 0) netdev=$(pf_netdev 0)
pf_folder=/sys/bus/pci/devices/$pf
start_libvirt
vfpass hook install
define_guest train0
settle train0

vf_count() { find "$pf_folder/" -maxdepth 1 -name 'virtfn*' | wc -l; }
keep() {
    snapshot_host /tmp/host.before "$pf"
    virsh dumpxml --inactive train0 >/tmp/xml.before
}
unchanged() {
    snapshot_host /tmp/host.after "$pf"
    virsh dumpxml --inactive train0 >/tmp/xml.after
    expect_same_file "$1: the host is as before" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is as before" /tmp/xml.before /tmp/xml.after
    expect "$1: no lease" no_lease
}
# round_trip TITLE: attach works in spite of it, and detach leaves everything as it was.
round_trip() {
    expect "$1: attach" vfpass attach train0
    expect "$1: detach" vfpass detach train0
    unchanged "$1"
}

section "numvfs_busy, numvfs_limit: a count that cannot be had"
mapping train0 rail0 "$pf"
keep
standin_parameter numvfs_busy Y
expect_exit 1 "numvfs_busy" vfpass attach train0
expect_said "the error is named" "the driver is busy and changes no VFs now: Device or resource busy (EBUSY)"
standin_parameter numvfs_busy N
unchanged "numvfs_busy"
standin_parameter numvfs_limit 3
expect_exit 1 "numvfs_limit" vfpass attach train0
expect_said "both numbers are told" "8 VFs asked for, but only 3 VFs appeared; those were removed again"
standin_parameter numvfs_limit 0
unchanged "numvfs_limit"
make_vfs "$pf" 2
keep
standin_parameter numvfs_busy Y
round_trip "numvfs_busy with VFs that are there"
standin_parameter numvfs_busy N

section "netdev_delay_ms: the VF's netdev is still to come"
echo 0 >"$pf_folder/sriov_numvfs"
make_vfs "$pf" 2
vf=$(vf_of "$pf" 0)
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
keep
standin_parameter netdev_delay_ms 15000
echo "$vf" >/sys/bus/pci/drivers_probe
expect_equal "the driver has the VF" mlx5_core "$(driver_of "$vf")"
expect_equal "which has no netdev" "" "$(netdev_of "$vf")"
mapping train0 rail0 "$pf" 'index: 0'
began=$SECONDS
expect_exit 5 "attach refuses a VF whose user cannot be told" vfpass attach train0
expect_said "the reason" "no netdev"
expect_said "the risk that can be accepted" "unknown-holder"
echo 'allow: [unknown-holder]' >>"$vms/train0.yaml"
expect "attach, the risk accepted" vfpass attach train0
took=$((SECONDS - began))
expect "attach did not wait for the netdev ($took s)" test "$took" -lt 14
expect_equal "the VF is on vfio-pci" vfio-pci "$(driver_of "$vf")"
standin_parameter netdev_delay_ms 0
expect "detach" vfpass detach train0
expect_equal "the host's driver has it again, with a netdev" 1 "$(netdev_of "$vf" | wc -w)"
mapping train0 rail0 "$pf"

section "mac_late_ms and configure_delay_ms: slow, and waited for"
echo 0 >"$pf_folder/sriov_numvfs"
keep
standin_parameter configure_delay_ms 2000
standin_parameter mac_late_ms 1500
expect "attach" vfpass attach train0
mac=$(vf_attributes "$netdev" 0 | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p')
expect "the MAC reads back when attach is done" grep -qE '^.[26ae]:' <<<"$mac"
standin_parameter configure_delay_ms 0
standin_parameter mac_late_ms 0
expect "detach" vfpass detach train0
unchanged "slow"

section "probe_delay_ms: VFs that are created are not probed, so nobody waits"
standin_parameter probe_delay_ms 20000
began=$SECONDS
expect "attach" vfpass attach train0
took=$((SECONDS - began))
expect "attach did not wait for eight probes ($took s)" test "$took" -lt 20
expect "detach" vfpass detach train0
standin_parameter probe_delay_ms 0
unchanged "probe_delay_ms"

section "refuse_attribute: each of them, required and not"
make_vfs "$pf" 2
ip link set dev "$netdev" vf 0 mac 02:00:00:00:00:77 vlan 7
keep
attributes=('mac=mac: 02:aa:00:00:00:11' 'vlan=vlan: {id: 9}' 'rate=rate: {max: 100}'
    'spoofchk=spoof-check: true' 'trust=trust: true' 'link_state=link-state: enable')
for attribute in "${attributes[@]}"; do
    name=${attribute%%=*} line=${attribute#*=}
    key=${line%%:*}
    standin_parameter refuse_attribute "$name"
    # What the kernel applies before, so that there is something to undo.
    before=('mac: 02:aa:00:00:00:12' 'vlan: {id: 8}')
    [ "$key" != mac ] || before=()
    [ "$key" != vlan ] || before=('mac: 02:aa:00:00:00:12')
    mapping train0 rail0 "$pf" 'index: 0' "${before[@]}" "$line"
    echo 'allow: [trust]' >>"$vms/train0.yaml"
    expect_exit 1 "$key is refused" vfpass attach train0
    expect_said "$key: attribute and driver are named" "mlx5_core refuses $key"
    expect_said "$key: earlier ones are undone" "the other attributes are as they were"
    snapshot_host /tmp/host.after "$pf"
    expect_same_file "$key: the host is as before" /tmp/host.before /tmp/host.after
done
# The address is always required, the others need not be.
mapping train0 rail0 "$pf" 'index: 0' "${attributes[@]#*=}" 'required: [mac]'
echo 'allow: [trust]' >>"$vms/train0.yaml"
standin_parameter refuse_attribute vlan,rate,spoofchk,trust,link_state
expect "all but the MAC are refused and not required" vfpass attach train0
for key in vlan rate spoof-check trust link-state; do
    expect_said "$key: a warning" "VF 0 of PF $pf: the driver refused $key, which is not required"
done
expect_contains "the MAC is set" 02:aa:00:00:00:11 vf_attributes "$netdev" 0
expect "detach" vfpass detach train0
standin_parameter refuse_attribute ""
unchanged "refuse_attribute"

section "vlan_8021ad: the kernel's own driver has no 802.1ad"
standin_parameter vlan_8021ad N
mapping train0 rail0 "$pf" 'index: 0' 'vlan: {id: 9, protocol: 802.1ad}'
expect_exit 1 "attach" vfpass attach train0
expect_said "attribute, value and reason" "mlx5_core refuses vlan 9 qos 0 802.1ad for VF 0"
expect_said "the reason" "EPROTONOSUPPORT"
standin_parameter vlan_8021ad Y
unchanged "vlan_8021ad"
expect "MLNX_OFED's driver has it: attach" vfpass attach train0
expect_contains "it is set" "vlan protocol 802.1ad" vf_attributes "$netdev" 0
expect "detach" vfpass detach train0
unchanged "802.1ad"

section "the PF is renamed between attach and start, and while attach runs"
echo 0 >"$pf_folder/sriov_numvfs"
mapping train0 rail0 "$pf" 'vlan: {id: 9}'
sed -i "s/pci: \"$pf\"/netdev: $netdev/" "$vms/train0.yaml"
standin_parameter configure_delay_ms 4000
vfpass -v attach train0 2>/tmp/attach.log &
attach=$!
expect "attach creates VFs" wait_until 20 grep -q 'create 8 VFs' /tmp/attach.log
ip link set dev "$netdev" name ens9f0np0
wait "$attach"
expect_equal "attach works on" 0 $?
standin_parameter configure_delay_ms 0
expect_contains "the VF is configured" "vlan 9" vf_attributes ens9f0np0 0
expect "start" virsh start train0
expect "the lease runs" has_lease running
virsh destroy train0 >/dev/null
expect "the lease is reserved" wait_until 20 has_lease reserved
expect_exit 2 "attach by a name that is gone" vfpass attach train0
expect_said "the message" "no PF netdev $netdev for VM train0; this host has $pf (ens9f0np0)"
expect_exit 3 "status" vfpass status train0
expect_said "status says so, too" "no PF netdev $netdev"
sed -i "s/netdev: $netdev/netdev: ens9f0np0/" "$vms/train0.yaml"
expect "attach by its new name has nothing to do" vfpass attach train0
expect "plan, too" vfpass plan train0

section "the PF loses its driver"
echo "$pf" >/sys/bus/pci/drivers/mlx5_core/unbind
expect_exit 1 "start is refused" virsh start train0
expect_said "the reason, in one line" "$pf: no driver that makes VFs is bound to it"
expect_exit 3 "status" vfpass status train0
expect_said "status says what is missing" "PF $pf is not there or has no driver"
expect "recover" vfpass recover
expect "the lease is kept" has_lease reserved
echo "$pf" >/sys/bus/pci/drivers/mlx5_core/bind
expect "the netdev is back" wait_until 20 test -d "$pf_folder/net"
expect "start works again" virsh start train0
virsh destroy train0 >/dev/null
expect "the lease is reserved" wait_until 20 has_lease reserved

section "the PF is removed"
echo 1 >"$pf_folder/remove"
refuse "it is gone" test -e "$pf_folder"
expect_exit 1 "start is refused" virsh start train0
expect_said "the reason, in one line" "PF $pf is not there or has no driver"
expect_exit 3 "status" vfpass status train0
expect_said "status says what is missing" "PF $pf is not there"
expect "recover" vfpass recover
expect "detach" vfpass detach train0
expect "no lease is left" no_lease
virsh dumpxml --inactive train0 >/tmp/xml.after
expect_same_file "the XML is as before" /tmp/xml.before /tmp/xml.after

section "the PF is removed under an attach"
echo 1 >/sys/bus/pci/rescan
expect "it is back" wait_until 20 test -d "$pf_folder/net"
mapping train0 rail0 "$pf"
keep
standin_parameter mac_late_ms 10000
vfpass -v attach train0 >/tmp/attach.log 2>&1 &
attach=$!
expect "attach waits for the late MAC" wait_until 20 grep -q 'configure on PF' /tmp/attach.log
echo 1 >"$pf_folder/remove"
wait "$attach"
expect_equal "attach fails" 1 $?
expect_contains "and names the PF" "$pf" cat /tmp/attach.log
standin_parameter mac_late_ms 0
expect "recover copes without the PF" vfpass recover
echo 1 >/sys/bus/pci/rescan
expect "it is back" wait_until 20 test -d "$pf_folder/net"
expect "recover" vfpass recover
unchanged "after the rescan"
round_trip "a new attach"
finish
