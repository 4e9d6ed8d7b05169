# A card's firmware that refuses commands, is slow or does not answer, drivers that fail, and PFs that are renamed or removed, each
# during the work of attach and detach.
# covers: src/host src/apply lab/connectx/faults.c
# shellcheck shell=bash disable=SC2154  # of lab/lib
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
pf_directory=/sys/bus/pci/devices/$pf
card_log=/lab/control/pf0.log
# The firmware's statuses, for which the driver returns EIO, EINVAL, EBUSY and ENOMEM (cmd_status_to_err in mlx5/core/cmd.c).
failed=1 bad_parameter=3 busy=6 exceeds_limit=8
start_libvirt
vfpass hook install
define_guest train0
settle train0

# removing: whether the driver's removal of the PF has begun. devlink is not asked: in Linux 6.12 the question waits for the instance, which the removal holds.
removing() { grep -q remove_one "/proc/$removal/stack"; }
# vf_commands LINE: the commands of VFs in the card's log after this line.
vf_commands() { tail -n "+$(($1 + 1))" "$card_log" | awk '$2 ~ /^vf/'; }
# log_length: for withholds and vf_commands, which look only at what comes after it.
log_length() { wc -l <"$card_log"; }
# withholds LINE TEXT: whether the card has received a command with this text after the line, without answering it.
withholds() { grep -q "$2 - .*never" <(tail -n "+$(($1 + 1))" "$card_log"); }
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

section "a VF count that cannot be set"
mapping train0 rail0 "$pf" 'index: 7'
keep
# The driver makes the eswitch's tables before it creates VFs.
card 0 fault CREATE_FLOW_TABLE function=pf status="$busy"
expect_exit 1 "the firmware is busy" vfpass attach train0
expect_said "the error has the system's reason" "cannot change the VF count: the driver is busy: Device or resource busy (EBUSY)"
card 0 clear
unchanged "busy firmware"
card 0 fault CREATE_FLOW_TABLE function=pf status="$exceeds_limit"
expect_exit 1 "the card has no memory for the VFs" vfpass attach train0
expect_said "the error has the number and the system's reason" "cannot create 8 VFs: Cannot allocate memory (ENOMEM)"
card 0 clear
unchanged "no memory"
mapping train0 rail0 "$pf"
# The driver only logs it and continues with the next VF.
card 0 fault ENABLE_HCA function=pf status="$failed"
expect_exit 1 "a VF that the firmware does not enable" vfpass attach train0
expect_said "the error quotes the kernel log" "the kernel log: mlx5_device_enable_sriov"
card 0 clear
unchanged "a VF that the firmware does not enable"
make_vfs "$pf" 2
refuse "the kernel does not change the count of VFs that are there" make_vfs "$pf" 3
keep
round_trip "VFs that are there"

section "the VF's driver has failed"
vf=$(vf_of "$pf" 0)
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
mapping train0 rail0 "$pf" 'index: 0'
keep
card 0 fault ENABLE_HCA function=vf0 status="$failed"
echo "$vf" >/sys/bus/pci/drivers_probe
expect_equal "without a function in the firmware, no driver is bound to the VF" "" "$(driver_of "$vf")"
round_trip "a VF whose probe has failed"
card 0 clear
# mlx5_core's own part succeeds, and its netdev's does not (mlx5e_create_mdev_resources).
card 0 fault ALLOC_TRANSPORT_DOMAIN function=vf0 status="$failed"
echo "$vf" >/sys/bus/pci/drivers_probe
expect_equal "the driver is bound to the VF" mlx5_core "$(driver_of "$vf")"
expect_equal "the VF has no netdev" "" "$(netdev_of "$vf")"
keep
expect_exit 5 "attach refuses a VF whose holder is unknown" vfpass attach train0
expect_said "the reason is printed" "no netdev"
expect_said "the error names the risk that can be accepted" "unknown-holder"
unchanged "unknown holder"
echo 'allow: [unknown-holder]' >>"$vms/train0.yaml"
expect "attach with the risk accepted" vfpass attach train0
expect_equal "the VF is on vfio-pci" vfio-pci "$(driver_of "$vf")"
card 0 clear
expect "detach" vfpass detach train0
unchanged "risk accepted"
expect_equal "the VF's netdev is back" 1 "$(netdev_of "$vf" | wc -w)"

section "the VF's driver is still probing"
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
lines=$(log_length)
card 0 fault INIT_HCA function=vf0 never
echo "$vf" >/sys/bus/pci/drivers_probe &
probe=$!
expect "the firmware does not answer" wait_until 60 withholds "$lines" 'vf0 INIT_HCA'
mapping train0 rail0 "$pf" 'index: 0'
expect_exit 5 "attach refuses the VF" vfpass attach train0
expect_said "the reason is printed" "no netdev"
card 0 clear
wait "$probe"
keep
round_trip "after the probe"

section "a slow firmware: attach waits"
echo 0 >"$pf_directory/sriov_numvfs"
mapping train0 rail0 "$pf"
keep
card 0 fault MODIFY_NIC_VPORT_CONTEXT function=pf late=1500
expect "attach" vfpass attach train0
mac=$(vf_attributes "$netdev" 0 | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p')
expect "the MAC reads back after attach" grep -qE '^.[26ae]:' <<<"$mac"
card 0 clear
expect "detach" vfpass detach train0
unchanged "slow firmware"

section "a firmware that answers after attach has given up"
mapping train0 rail0 "$pf" 'rate: {max: 100}'
card 0 fault CREATE_SCHEDULING_ELEMENT function=pf never count=1
expect_exit 1 "attach fails" vfpass attach train0
expect_said "the error names the PF" "$pf"
expect_exit 5 "recover does not remove the VF while the driver waits" vfpass recover
expect_said "the reason is printed" "still pending"
card 0 clear
expect "recover" vfpass recover
unchanged "late answer"
round_trip "a new attach"

section "new VFs are not probed on the host"
mapping train0 rail0 "$pf"
lines=$(log_length)
round_trip "without a probe"
expect_equal "no VF has sent a command" "" "$(vf_commands "$lines")"

section "the firmware refuses each attribute, required and optional"
make_vfs "$pf" 2
# Trust is not here: to mlx5 it is no command of its own, so that it cannot fail.
attributes=('mac=mac: 02:aa:00:00:00:11' 'vlan=vlan: {id: 9}' 'rate=rate: {max: 100}'
    'spoof-check=spoof-check: true' 'link-state=link-state: enable')
declare -A commands=([mac]=MODIFY_NIC_VPORT_CONTEXT [vlan]=MODIFY_ESW_VPORT_CONTEXT
    [rate]='CREATE_SCHEDULING_ELEMENT MODIFY_SCHEDULING_ELEMENT' [spoof-check]=CREATE_FLOW_TABLE [link-state]=MODIFY_VPORT_STATE)
# refuse_attribute KEY STATUS: the firmware's commands for this attribute of a VF fail.
refuse_attribute() {
    local command
    for command in ${commands[$1]}; do
        card 0 fault "$command" function=pf status="$2" >/dev/null || return
    done
}
for attribute in "${attributes[@]}"; do
    key=${attribute%%=*} line=${attribute#*=}
    # Attributes that the kernel applies first, so that there is something to roll back. The spoof check makes a table only if
    # the VLAN has none.
    before=('mac: 02:aa:00:00:00:12' 'vlan: {id: 8}') vlan=7
    [ "$key" != mac ] || before=()
    [ "$key" != vlan ] || before=('mac: 02:aa:00:00:00:12')
    [ "$key" != spoof-check ] || { before=('mac: 02:aa:00:00:00:12'); vlan=0; }
    ip link set dev "$netdev" vf 0 mac 02:00:00:00:00:77 vlan "$vlan" spoofchk off
    keep
    mapping train0 rail0 "$pf" 'index: 0' "${before[@]}" "$line"
    expect "$key: the firmware fails" refuse_attribute "$key" "$failed"
    expect_exit 1 "$key is refused" vfpass attach train0
    expect_said "$key: the error names attribute and driver" "driver mlx5_core cannot set $key of VF 0 to "
    expect_said "$key: earlier attributes are rolled back" "the previous attributes were restored"
    expect_said "$key: the remedy is the cause in the kernel log" "find the cause in the kernel log (dmesg)"
    card 0 clear
    unchanged "$key"
done
# The MAC is always required; the other attributes may be optional.
ip link set dev "$netdev" vf 0 mac 02:00:00:00:00:77 vlan 0 spoofchk off
keep
mapping train0 rail0 "$pf" 'index: 0' "${attributes[@]#*=}" 'required: [mac]'
for status in "$failed" "$bad_parameter"; do
    for key in vlan rate spoof-check link-state; do
        expect "$key: the firmware fails with status $status" refuse_attribute "$key" "$status"
    done
    expect "attach when all attributes but the MAC are optional and refused" vfpass attach train0
    for key in vlan rate spoof-check link-state; do
        expect_said "$key: attach warns" "VF 0 of PF $pf: the driver refused the optional attribute $key"
    done
    expect_contains "the MAC is set" 02:aa:00:00:00:11 vf_attributes "$netdev" 0
    expect "detach" vfpass detach train0
    card 0 clear
    unchanged "refused attributes"
done

section "a refused VLAN reads back"
ip link set dev "$netdev" vf 0 mac 02:00:00:00:00:77 vlan 0
keep
# mlx5 stores the VLAN before it makes the tables that enforce it (__mlx5_eswitch_set_vport_vlan).
card 0 fault CREATE_FLOW_TABLE function=pf status="$exceeds_limit"
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
card 0 clear
unchanged "optional VLAN that is stored"

section "the kernel's own driver has no 802.1ad"
mapping train0 rail0 "$pf" 'index: 0' 'vlan: {id: 9, protocol: 802.1ad}'
expect_exit 1 "attach" vfpass attach train0
expect_said "the error has attribute and value" "driver mlx5_core cannot set vlan of VF 0 to 9 qos 0 802.1ad"
expect_said "the reason is printed" "EPROTONOSUPPORT"
unchanged "802.1ad"

section "the PF is renamed during attach and before the start"
echo 0 >"$pf_directory/sriov_numvfs"
mapping train0 rail0 "$pf" 'vlan: {id: 9}'
sed -i "s/pci: \"$pf\"/netdev: $netdev/" "$vms/train0.yaml"
card 0 fault ENABLE_HCA function=pf late=4000 count=1
vfpass -v attach train0 2>/tmp/attach.log &
attach=$!
expect "attach creates the VF" wait_until 60 grep -q 'create 1 VF ' /tmp/attach.log
expect "the PF is renamed meanwhile" ip link set dev "$netdev" name ens9f0np0
wait "$attach"
expect_equal "attach succeeds" 0 $?
card 0 clear
expect_contains "the VF is configured" "vlan 9" vf_attributes ens9f0np0 0
expect "start" virsh start train0
expect "the lease is running" has_lease running
virsh destroy train0 >/dev/null
expect "the lease is reserved" wait_until 60 has_lease reserved
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
expect_said "status reports the missing driver" "PF $pf is bound to no driver"
expect "recover" vfpass recover
expect "the lease is kept" has_lease reserved
echo "$pf" >/sys/bus/pci/drivers/mlx5_core/bind
expect "the netdev is back" wait_until 60 test -d "$pf_directory/net"
expect "start works again" virsh start train0
virsh destroy train0 >/dev/null
expect "the lease is reserved" wait_until 60 has_lease reserved

section "the PF is removed"
echo 1 >"$pf_directory/remove"
refuse "the PF is gone" test -e "$pf_directory"
expect_exit 1 "start is refused" virsh start train0
expect_said "the reason is printed in one line" "PF $pf does not exist or has no driver"
expect_exit 3 "status" vfpass status train0
expect_said "status reports the missing PF" "PF $pf does not exist"
expect "recover" vfpass recover
expect "detach" vfpass detach train0
expect "no lease is left" no_lease
virsh dumpxml --inactive train0 >/tmp/xml.after
expect_same_file "the XML is restored" /tmp/xml.before /tmp/xml.after

section "the PF is removed during an attach"
echo 1 >/sys/bus/pci/rescan
expect "the PF is back" wait_until 60 test -d "$pf_directory/net"
# The creation of a VF does not send this command.
mapping train0 rail0 "$pf" 'rate: {max: 100}'
keep
lines=$(log_length)
card 0 fault CREATE_SCHEDULING_ELEMENT function=pf never
vfpass -v attach train0 >/tmp/attach.log 2>&1 &
attach=$!
expect "attach waits for the firmware" wait_until 60 withholds "$lines" 'pf CREATE_SCHEDULING_ELEMENT'
echo 1 >"$pf_directory/remove" &
removal=$!
expect "the removal is under way" wait_until 60 removing
wait "$attach"
expect_equal "attach fails" 1 $?
expect_contains "the error names the PF" "$pf" cat /tmp/attach.log
# The PF is still there, so that it is still the first card.
card 0 clear
wait "$removal"
refuse "the PF is gone" test -e "$pf_directory"
expect "recover succeeds without the PF" vfpass recover
echo 1 >/sys/bus/pci/rescan
expect "the PF is back" wait_until 60 test -d "$pf_directory/net"
expect "recover" vfpass recover
unchanged "after the rescan"
round_trip "a new attach"
# A soft lockup only shows that this machine is busy.
expect_equal "the kernel has not crashed" "" "$(dmesg | grep -E 'BUG:|Oops|general protection|blocked for more' | grep -v 'soft lockup')"
finish
