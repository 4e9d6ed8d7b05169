# Every misbehaviour of the stand-in, and PFs that are renamed or removed.
# covers: src/host src/apply lab/module
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_standin
pf=$(pf_address 0) netdev=$(pf_netdev 0)
pf_directory=/sys/bus/pci/devices/$pf
start_libvirt
vfpass hook install
define_guest train0
settle train0

vf_count() { find "$pf_directory/" -maxdepth 1 -name 'virtfn*' | wc -l; }
keep() {
    snapshot_host /tmp/host.before "$pf"
    virsh dumpxml --inactive train0 >/tmp/xml.before
}
unchanged() {
    snapshot_host /tmp/host.after "$pf"
    virsh dumpxml --inactive train0 >/tmp/xml.after
    expect_same_file "$1: the host is restored" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is restored" /tmp/xml.before /tmp/xml.after
    expect "$1: no lease" no_lease
}
# round_trip TITLE: attach works, and detach restores everything.
round_trip() {
    expect "$1: attach" vfpass attach train0
    expect "$1: detach" vfpass detach train0
    unchanged "$1"
}

section "numvfs_busy, numvfs_limit: a VF count that cannot be set"
mapping train0 rail0 "$pf" 'index: 7'
keep
standin_parameter numvfs_busy Y
expect_exit 1 "numvfs_busy" vfpass attach train0
expect_said "the error has the system's reason" "cannot change the VF count: the driver is busy: Device or resource busy (EBUSY)"
standin_parameter numvfs_busy N
unchanged "numvfs_busy"
standin_parameter numvfs_limit 3
expect_exit 1 "numvfs_limit" vfpass attach train0
expect_said "the error has both numbers" "requested 8 VFs, but only 3 VFs appeared and were removed again"
standin_parameter numvfs_limit 0
unchanged "numvfs_limit"
mapping train0 rail0 "$pf"
make_vfs "$pf" 2
keep
standin_parameter numvfs_busy Y
round_trip "numvfs_busy with VFs that are there"
standin_parameter numvfs_busy N

section "netdev_delay_ms: the VF's netdev has not appeared yet"
echo 0 >"$pf_directory/sriov_numvfs"
make_vfs "$pf" 2
vf=$(vf_of "$pf" 0)
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
keep
standin_parameter netdev_delay_ms 15000
echo "$vf" >/sys/bus/pci/drivers_probe
expect_equal "the driver is bound to the VF" mlx5_core "$(driver_of "$vf")"
expect_equal "the VF has no netdev" "" "$(netdev_of "$vf")"
mapping train0 rail0 "$pf" 'index: 0'
began=$SECONDS
expect_exit 5 "attach refuses a VF whose holder is unknown" vfpass attach train0
expect_said "the reason is printed" "no netdev"
expect_said "the error names the risk that can be accepted" "unknown-holder"
echo 'allow: [unknown-holder]' >>"$vms/train0.yaml"
expect "attach with the risk accepted" vfpass attach train0
took=$((SECONDS - began))
expect "attach does not wait for the netdev ($took s)" test "$took" -lt 14
expect_equal "the VF is on vfio-pci" vfio-pci "$(driver_of "$vf")"
standin_parameter netdev_delay_ms 0
expect "detach" vfpass detach train0
expect_equal "the VF's netdev is back" 1 "$(netdev_of "$vf" | wc -w)"
mapping train0 rail0 "$pf"

section "mac_late_ms and configure_delay_ms: attach waits"
echo 0 >"$pf_directory/sriov_numvfs"
keep
standin_parameter configure_delay_ms 2000
standin_parameter mac_late_ms 1500
expect "attach" vfpass attach train0
mac=$(vf_attributes "$netdev" 0 | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p')
expect "the MAC reads back after attach" grep -qE '^.[26ae]:' <<<"$mac"
standin_parameter configure_delay_ms 0
standin_parameter mac_late_ms 0
expect "detach" vfpass detach train0
unchanged "slow driver"

section "probe_delay_ms: new VFs are not probed, so attach does not wait"
standin_parameter probe_delay_ms 20000
began=$SECONDS
expect "attach" vfpass attach train0
took=$((SECONDS - began))
expect "attach does not wait for the probe ($took s)" test "$took" -lt 20
expect "detach" vfpass detach train0
standin_parameter probe_delay_ms 0
unchanged "probe_delay_ms"

section "refuse_attribute: each attribute, required and optional"
make_vfs "$pf" 2
ip link set dev "$netdev" vf 0 mac 02:00:00:00:00:77 vlan 7
keep
attributes=('mac=mac: 02:aa:00:00:00:11' 'vlan=vlan: {id: 9}' 'rate=rate: {max: 100}'
    'spoofchk=spoof-check: true' 'trust=trust: true' 'link_state=link-state: enable')
for attribute in "${attributes[@]}"; do
    name=${attribute%%=*} line=${attribute#*=}
    key=${line%%:*}
    standin_parameter refuse_attribute "$name"
    # Attributes that the kernel applies first, so that there is something to roll back.
    before=('mac: 02:aa:00:00:00:12' 'vlan: {id: 8}')
    [ "$key" != mac ] || before=()
    [ "$key" != vlan ] || before=('mac: 02:aa:00:00:00:12')
    mapping train0 rail0 "$pf" 'index: 0' "${before[@]}" "$line"
    echo 'allow: [trust]' >>"$vms/train0.yaml"
    expect_exit 1 "$key is refused" vfpass attach train0
    expect_said "$key: the error names attribute and driver" "driver mlx5_core cannot set $key of VF 0 to "
    expect_said "$key: earlier attributes are rolled back" "the previous attributes were restored"
    snapshot_host /tmp/host.after "$pf"
    expect_same_file "$key: the host is restored" /tmp/host.before /tmp/host.after
done
# The MAC is always required; the other attributes may be optional.
mapping train0 rail0 "$pf" 'index: 0' "${attributes[@]#*=}" 'required: [mac]'
echo 'allow: [trust]' >>"$vms/train0.yaml"
standin_parameter refuse_attribute vlan,rate,spoofchk,trust,link_state
expect "attach when all attributes but the MAC are optional and refused" vfpass attach train0
for key in vlan rate spoof-check trust link-state; do
    expect_said "$key: attach warns" "VF 0 of PF $pf: the driver refused the optional attribute $key"
done
expect_contains "the MAC is set" 02:aa:00:00:00:11 vf_attributes "$netdev" 0
expect "detach" vfpass detach train0
standin_parameter refuse_attribute ""
unchanged "refuse_attribute"

section "store_refused: a refused VLAN reads back"
ip link set dev "$netdev" vf 0 mac 02:00:00:00:00:77 vlan 0
keep
standin_parameter refuse_attribute vlan
standin_parameter store_refused Y
refuse "the driver refuses the VLAN" ip link set dev "$netdev" vf 0 vlan 9
expect_contains "the refused VLAN reads back" "vlan 9" vf_attributes "$netdev" 0
expect "the driver accepts VLAN 0" ip link set dev "$netdev" vf 0 vlan 0
mapping train0 rail0 "$pf" 'index: 0' 'mac: 02:aa:00:00:00:11' 'vlan: {id: 9}' 'required: [vlan]'
expect_exit 1 "a required VLAN is refused" vfpass attach train0
expect_said "the error names the attribute" "driver mlx5_core cannot set vlan of VF 0 to "
expect_said "everything is rolled back" "the previous attributes were restored"
unchanged "required VLAN that is stored"
mapping train0 rail0 "$pf" 'index: 0' 'mac: 02:aa:00:00:00:11' 'vlan: {id: 9}' 'required: [mac]'
expect "attach with an optional VLAN" vfpass attach train0
expect_said "attach warns" "VF 0 of PF $pf: the driver refused the optional attribute vlan"
refuse "the VF has no VLAN" grep -q "vlan 9" <(vf_attributes "$netdev" 0)
expect_contains "the MAC is set" 02:aa:00:00:00:11 vf_attributes "$netdev" 0
expect "detach" vfpass detach train0
standin_parameter store_refused N
standin_parameter refuse_attribute ""
unchanged "optional VLAN that is stored"

section "vlan_8021ad: the kernel's own driver has no 802.1ad"
standin_parameter vlan_8021ad N
mapping train0 rail0 "$pf" 'index: 0' 'vlan: {id: 9, protocol: 802.1ad}'
expect_exit 1 "attach" vfpass attach train0
expect_said "the error has attribute and value" "driver mlx5_core cannot set vlan of VF 0 to 9 qos 0 802.1ad"
expect_said "the reason is printed" "EPROTONOSUPPORT"
standin_parameter vlan_8021ad Y
unchanged "vlan_8021ad"
expect "attach with MLNX_OFED's behaviour" vfpass attach train0
expect_contains "the 802.1ad VLAN is set" "vlan protocol 802.1ad" vf_attributes "$netdev" 0
expect "detach" vfpass detach train0
unchanged "802.1ad"

section "the PF is renamed during attach and before the start"
echo 0 >"$pf_directory/sriov_numvfs"
mapping train0 rail0 "$pf" 'vlan: {id: 9}'
sed -i "s/pci: \"$pf\"/netdev: $netdev/" "$vms/train0.yaml"
standin_parameter configure_delay_ms 4000
vfpass -v attach train0 2>/tmp/attach.log &
attach=$!
expect "attach creates the VF" wait_until 20 grep -q 'create 1 VF ' /tmp/attach.log
ip link set dev "$netdev" name ens9f0np0
wait "$attach"
expect_equal "attach succeeds" 0 $?
standin_parameter configure_delay_ms 0
expect_contains "the VF is configured" "vlan 9" vf_attributes ens9f0np0 0
expect "start" virsh start train0
expect "the lease is running" has_lease running
virsh destroy train0 >/dev/null
expect "the lease is reserved" wait_until 20 has_lease reserved
expect_exit 2 "attach with the PF's old name" vfpass attach train0
expect_said "the error is printed" "no PF netdev $netdev for VM train0; this host has $pf (ens9f0np0)"
expect_exit 3 "status" vfpass status train0
expect_said "status reports the missing netdev" "no PF netdev $netdev"
sed -i "s/netdev: $netdev/netdev: ens9f0np0/" "$vms/train0.yaml"
expect "attach with the PF's new name changes nothing" vfpass attach train0
expect "plan has no changes" vfpass plan train0

section "the PF loses its driver"
echo "$pf" >/sys/bus/pci/drivers/mlx5_core/unbind
expect_exit 1 "start is refused" virsh start train0
expect_said "the reason is printed in one line" "train0 cannot start: PF $pf is bound to no driver; bind it to its own driver"
expect_exit 3 "status" vfpass status train0
expect_said "status reports the missing PF or driver" "PF $pf does not exist or has no driver"
expect "recover" vfpass recover
expect "the lease is kept" has_lease reserved
echo "$pf" >/sys/bus/pci/drivers/mlx5_core/bind
expect "the netdev is back" wait_until 20 test -d "$pf_directory/net"
expect "start works again" virsh start train0
virsh destroy train0 >/dev/null
expect "the lease is reserved" wait_until 20 has_lease reserved

section "the PF is removed"
echo 1 >"$pf_directory/remove"
refuse "the PF is gone" test -e "$pf_directory"
expect_exit 1 "start is refused" virsh start train0
expect_said "the reason is printed in one line" "PF $pf does not exist or has no driver"
expect_exit 3 "status" vfpass status train0
expect_said "status reports the missing PF or driver" "PF $pf does not exist"
expect "recover" vfpass recover
expect "detach" vfpass detach train0
expect "no lease is left" no_lease
virsh dumpxml --inactive train0 >/tmp/xml.after
expect_same_file "the XML is restored" /tmp/xml.before /tmp/xml.after

section "the PF is removed during an attach"
echo 1 >/sys/bus/pci/rescan
expect "the PF is back" wait_until 20 test -d "$pf_directory/net"
mapping train0 rail0 "$pf"
keep
standin_parameter mac_late_ms 10000
vfpass -v attach train0 >/tmp/attach.log 2>&1 &
attach=$!
expect "attach waits for the late MAC" wait_until 20 grep -q 'configure PF' /tmp/attach.log
echo 1 >"$pf_directory/remove"
wait "$attach"
expect_equal "attach fails" 1 $?
expect_contains "the error names the PF" "$pf" cat /tmp/attach.log
standin_parameter mac_late_ms 0
expect "recover succeeds without the PF" vfpass recover
echo 1 >/sys/bus/pci/rescan
expect "the PF is back" wait_until 20 test -d "$pf_directory/net"
expect "recover" vfpass recover
unchanged "after the rescan"
round_trip "a new attach"
finish
