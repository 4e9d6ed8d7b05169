# PFs configured by host.yaml: VF count, eswitch mode, MTU, link; VFs in use are kept; and installing the hook.
# covers: src/commands/host_apply.cpp src/commands/host*.cpp src/plan/host_* src/plan/plan_vf_creation.* src/host/sriov/create_remove_vfs.*
# covers: src/host/sriov/read_pf.* src/commands/?f_command.cpp
# covers: src/host/netlink/link_settings.cpp src/config/host_reader.cpp src/hook/install/include/vfpass/install/hook_files.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0) other=$(pf_address 1)

# policy PF [LINE...]: writes host.yaml with one PF; LINEs are added to its entry.
policy() {
    {
        printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n' "$1"
        shift
        printf '    %s\n' "$@"
    } >/etc/vfpass/host.yaml
}

vf_count() { find "/sys/bus/pci/devices/$1/" -maxdepth 1 -name 'virtfn*' | wc -l; }

snapshot() {
    snapshot_host "$1" "$pf" "$other"
    ip -o link show dev "$netdev" >>"$1"
}

# refused TITLE TEXT: host apply ends with exit code 5, names the holder, and changes nothing.
refused() {
    snapshot /tmp/host.before
    expect_exit 5 "$1" vfpass host apply
    expect_said "$1: the error names the holder" "$2"
    snapshot /tmp/host.after
    expect_same_file "$1: nothing has changed" /tmp/host.before /tmp/host.after
}

section "the first host.yaml"
policy "$pf" 'virtual-function-count: 4' 'mtu: 9000' 'up: true'
expect_exit 3 "host show reports pending changes" vfpass host show
expect_said "host show marks the difference" "differs"
expect_exit 3 "a dry run exits with 3 for pending changes" vfpass host apply --dry-run
expect_equal "a dry run creates no VFs" 0 "$(vf_count "$pf")"
expect "host apply" vfpass host apply
expect_equal "the PF has the requested VF count" 4 "$(vf_count "$pf")"
for index in 0 3; do
    expect_equal "VF $index has no driver" "" "$(driver_of "$(vf_of "$pf" "$index")")"
done
expect_equal "autoprobe is restored" 1 "$(cat "/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe")"
expect_contains "the MTU is set" "mtu 9000" ip -o link show dev "$netdev"
expect_contains "the link is up" ",UP" ip -o link show dev "$netdev"
expect_equal "the PF that host.yaml does not name has no VFs" 0 "$(vf_count "$other")"
expect "host show reports no change" vfpass host show
refuse "host show marks no difference" grep -q differs <(vfpass host show)

section "one netlink message for each PF reads all of its VFs"
# A PF without VFs is asked, too: its answer tells whether the driver has detached the netdev.
# messages COMMAND...: how many messages it sends, of its own and in guarded processes. Without libvirt's daemon, which
# vf list asks for domains, it has no other sockets than netlink.
messages() {
    strace -f -qq -o /tmp/strace -e trace=sendmsg,sendto vfpass --connect test:///default "$@" >/dev/null
    grep -cE ' send(msg|to)\(' /tmp/strace
}
expect_equal "vf list with 4 VFs of one of two PFs" 2 "$(messages vf list)"
expect_equal "pf list" 0 "$(messages pf list)"
expect "the other PF gets VFs" make_vfs "$other" 8
expect_equal "vf list with 12 VFs of both" 2 "$(messages vf list)"
expect_equal "with the addresses of the PFs, for JSON" 3 "$(messages --json vf list)"
echo 0 >"/sys/bus/pci/devices/$other/sriov_numvfs"

section "gpu-memory-check is applied, also if a later host.yaml has mistakes"
cp /etc/vfpass/host.yaml /tmp/host.yaml
echo 'gpu-memory-check: true' >>/etc/vfpass/host.yaml
expect_exit 3 "a dry run reports it" vfpass host apply --dry-run
expect_equal "a dry run does not turn it on" "" "$(ls /run/vfpass/gpu-memory-check 2>/dev/null)"
expect_exit 3 "a dry run saves its plan" vfpass host apply --dry-run --output /tmp/memory-check.plan
expect_contains "a saved plan does not have it" "without --plan applies it" vfpass host apply --plan /tmp/memory-check.plan
expect_equal "a saved plan does not turn it on" "" "$(ls /run/vfpass/gpu-memory-check 2>/dev/null)"
expect "host apply" vfpass host apply
expect_equal "it is on" /run/vfpass/gpu-memory-check "$(ls /run/vfpass/gpu-memory-check)"
echo 'unknown: 1' >>/etc/vfpass/host.yaml
expect_exit 2 "host.yaml has a mistake" vfpass host apply
expect_equal "it is off" "" "$(ls /run/vfpass/gpu-memory-check 2>/dev/null)"
cp /tmp/host.yaml /etc/vfpass/host.yaml

section "a second host apply changes nothing"
snapshot /tmp/host.before
ls -di "/sys/bus/pci/devices/$pf"/virtfn*/ >/tmp/inodes.before
expect "host apply again" vfpass host apply
expect_contains "the JSON has no actions" '"actions": []' vfpass --json host apply
snapshot /tmp/host.after
ls -di "/sys/bus/pci/devices/$pf"/virtfn*/ >/tmp/inodes.after
expect_same_file "the host is unchanged" /tmp/host.before /tmp/host.after
expect_same_file "the VFs are the same ones" /tmp/inodes.before /tmp/inodes.after

section "another VF count without VFs in use"
policy "$pf" 'virtual-function-count: 6'
expect_exit 3 "host show reports a pending change" vfpass host show
expect "host apply" vfpass host apply
expect_equal "the PF has the new VF count" 6 "$(vf_count "$pf")"
expect_contains "an MTU that is not in host.yaml is kept" "mtu 9000" ip -o link show dev "$netdev"

section "attributes that others have set survive a change of the VF count"
ip link set dev "$netdev" vf 1 mac 02:00:00:00:00:17 vlan 17
ip link set dev "$netdev" vf 4 trust on
vf_attributes "$netdev" 1 >/tmp/vf1.before
vf_attributes "$netdev" 4 >/tmp/vf4.before
policy "$pf" 'virtual-function-count: 7'
expect_exit 3 "a dry run" vfpass host apply --dry-run
expect_said "the dry run shows the attributes" "mac 02:00:00:00:00:17"
expect_said "the dry run shows the reason" "because the previous VFs had these values"
expect "host apply" vfpass host apply
expect_equal "the PF has the new VF count" 7 "$(vf_count "$pf")"
vf_attributes "$netdev" 1 >/tmp/vf1.after
vf_attributes "$netdev" 4 >/tmp/vf4.after
expect_same_file "VF 1 keeps its MAC and VLAN" /tmp/vf1.before /tmp/vf1.after
expect_same_file "VF 4 keeps trust on" /tmp/vf4.before /tmp/vf4.after
policy "$pf" 'virtual-function-count: 6'
expect "host apply with one VF less" vfpass host apply
vf_attributes "$netdev" 1 >/tmp/vf1.after
expect_same_file "VF 1 still has its MAC and VLAN" /tmp/vf1.before /tmp/vf1.after

section "changes that the host notices need consent"
ip addr add 192.0.2.1/24 dev "$netdev"
policy "$pf" 'virtual-function-count: 5'
refused "a PF with an address" "netdev $netdev has address 192.0.2.1/24"
expect_exit 5 "a dry run without consent" vfpass host apply --dry-run
expect_said "the remedy is --allow-disruption" "host apply --allow-disruption"
expect_exit 3 "a dry run with consent" vfpass host apply --dry-run --allow-disruption
expect_said "the step is marked as disruptive" "disrupts: may affect other users of the host"
expect "host apply with consent" vfpass host apply --allow-disruption
expect_equal "the PF has the new VF count" 5 "$(vf_count "$pf")"
ip addr del 192.0.2.1/24 dev "$netdev"
modprobe bonding
ip link add bond9 type bond
ip link set dev "$netdev" down
ip link set dev "$netdev" master bond9
policy "$pf" 'virtual-function-count: 6'
refused "a PF in a bond" "netdev $netdev is below bond9"
policy "$pf" 'virtual-function-count: 6' 'allow-disruption: true'
expect "host apply with consent in host.yaml" vfpass host apply
expect_equal "the PF has the new VF count" 6 "$(vf_count "$pf")"
ip link set dev "$netdev" nomaster
ip link del bond9
ip link set dev "$netdev" mtu 9000 up

section "invalid requests in host.yaml"
policy "$pf" 'virtual-function-count: 9'
expect_exit 2 "more VFs than the device supports" vfpass host apply
expect_said "the error has both numbers" "9 VFs requested, but PF $pf ($netdev) supports at most 8"
policy "0000:7f:00.0" 'virtual-function-count: 4'
expect_exit 2 "a PF that does not exist" vfpass host apply
expect_said "the error has the line in host.yaml" "host.yaml:3:"
policy "$pf" 'serial: MT2116X00000' 'virtual-function-count: 4'
refused "the wrong card" "MT2116X00000"
expect_equal "no VF was touched" 6 "$(vf_count "$pf")"
policy "$pf" 'virtual-function-counts: 4'
expect_exit 2 "an unknown key" vfpass host apply
expect_said "the right key is suggested" "virtual-function-count"

section "firmware that is busy or has no resources for the VFs"
# The driver makes the eswitch's tables before it creates VFs, and returns the firmware's status as an errno.
busy=0x6 no_resources=0xf
policy "$pf" 'virtual-function-count: 4'
snapshot /tmp/host.before
card 0 fault CREATE_FLOW_TABLE function=pf status="$busy" count=1
expect_exit 1 "EBUSY" vfpass host apply
expect_said "the error is printed" "cannot change the VF count: the driver is busy: Device or resource busy (EBUSY)"
snapshot /tmp/host.after
expect_same_file "the VFs and their attributes are restored" /tmp/host.before /tmp/host.after
card 0 fault CREATE_FLOW_TABLE function=pf status="$no_resources"
expect_exit 1 "no resources" vfpass host apply
expect_said "the error is printed" "cannot create 4 VFs: Resource temporarily unavailable (EAGAIN)"
expect_said "the rollback fails too" "rolling back failed"
expect_equal "no VFs are left" 0 "$(vf_count "$pf")"
card 0 clear
policy "$pf" 'virtual-function-count: 6'
expect "the next host apply restores the old VF count" vfpass host apply
expect_equal "the PF has the old VF count" 6 "$(vf_count "$pf")"
policy "$pf" 'virtual-function-count: 4'
expect "host apply with the firmware's resources" vfpass host apply
expect_equal "the PF has the VFs" 4 "$(vf_count "$pf")"

section "a VF's netdev is up"
vf=$(vf_of "$pf" 2)
bind_to "$vf" mlx5_core
wait_until 60 has_netdev "$vf"
up_netdev=$(netdev_of "$vf")
ip link set dev "$up_netdev" up
policy "$pf" 'virtual-function-count: 8'
refused "a netdev that is up" "VF 2 ($(vf_of "$pf" 2)): its netdev $up_netdev is up"
ip link set dev "$up_netdev" down

section "a VF is on vfio-pci"
bind_to "$vf" vfio-pci
refused "a VF on vfio-pci" "VF 2 ($vf) is bound to vfio-pci"
echo "$vf" >/sys/bus/pci/drivers/vfio-pci/unbind
echo >"/sys/bus/pci/devices/$vf/driver_override"

section "a leased VF, and hook remove while there is a lease"
start_libvirt
printf '#!/bin/sh\nexit 0\n' >/etc/libvirt/hooks/qemu.d/10-own
chmod 0755 /etc/libvirt/hooks/qemu.d/10-own
stat -c '%n %i %s %a %Y' /etc/libvirt/hooks/qemu.d/* >/tmp/hooks.before
expect "hook install" vfpass hook install
expect_contains "a second hook install changes nothing" "already installed" vfpass hook install
define_guest train0
mapping train0 rail0 "$pf" 'index: 1'
expect "attach" vfpass attach train0
refused "a leased VF" "VF 1 is leased to domain train0"
policy "$pf" 'up: false'
refused "taking the link down under a lease" "VF 1 is leased to domain train0"
expect_exit 5 "hook remove while there are leases" vfpass hook remove
expect_said "the error names the VM" "train0"
expect_exit 5 "hook remove --dry-run while there are leases" vfpass hook remove --dry-run
expect "the hook is still installed" test -L /etc/libvirt/hooks/qemu.d/vfpass
expect "detach" vfpass detach train0
expect "hook remove" vfpass hook remove
refuse "the hook is removed" test -e /etc/libvirt/hooks/qemu.d/vfpass
stat -c '%n %i %s %a %Y' /etc/libvirt/hooks/qemu.d/* >/tmp/hooks.after
expect_same_file "the administrator's own hooks are unchanged" /tmp/hooks.before /tmp/hooks.after
policy "$pf" 'virtual-function-count: 8' 'up: false'
refused "a link that is up is not taken down without consent" "netdev $netdev is up"
expect "host apply with consent, without VFs in use" vfpass host apply --allow-disruption
expect_equal "the PF has the VF count" 8 "$(vf_count "$pf")"
refuse "the link is down" grep -q ',UP' <(ip -o link show dev "$netdev")
expect "host show reports no change" vfpass host show

section "switchdev mode needs consent if the PF is up"
ip link set dev "$netdev" up
devlink_mode() { devlink -j dev eswitch show "pci/$pf" | jq -r '.dev[].mode'; }
flow_tables() { card 0 count CREATE_FLOW_TABLE; }

# set_by_hand MODE: sets tables_MODE to the number of flow tables that the driver creates for it, without VFs.
set_by_hand() {
    local before
    before=$(flow_tables)
    expect "devlink sets $1 mode" devlink dev eswitch set "pci/$pf" mode "$1"
    printf -v "tables_$1" %s $(($(flow_tables) - before))
}

# fault_at_vfs MODE: the firmware fails at the first flow table that the driver creates after those of MODE: the one for the VFs.
# The first fault only counts.
fault_at_vfs() {
    local tables=tables_$1
    card 0 clear
    [ "${!tables}" = 0 ] || card 0 fault CREATE_FLOW_TABLE function=pf late=1 count="${!tables}"
    card 0 fault CREATE_FLOW_TABLE function=pf count=1
}

make_vfs "$pf" 0
set_by_hand switchdev
set_by_hand legacy
policy "$pf" 'virtual-function-count: 4'
expect "4 VFs in legacy mode" vfpass host apply
ip link set dev "$netdev" vf 1 mac 02:00:00:00:00:19 vlan 19
ip link set dev "$netdev" vf 2 trust on
policy "$pf" 'virtual-function-count: 4' 'embedded-switch-mode: switchdev'
refused "a PF that is up" "netdev $netdev is up and loses its link for a moment"
expect_exit 3 "a dry run with consent" vfpass host apply --dry-run --allow-disruption
expect_said "the dry run has the step" "set the eswitch mode of PF $pf to switchdev"

section "a change to switchdev mode that fails"
# rolled_back TITLE TEXT: host apply fails with TEXT, and the host has the VFs of legacy mode as before.
rolled_back() {
    snapshot /tmp/host.before
    expect_exit 1 "$1" vfpass host apply --allow-disruption
    expect_said "$1: the error is printed" "$2"
    card 0 clear
    expect_equal "$1: legacy mode" legacy "$(devlink_mode)"
    snapshot /tmp/host.after
    expect_same_file "$1: the VFs and their attributes are restored" /tmp/host.before /tmp/host.after
    expect_equal "$1: no representor is left" "" "$(representors)"
}
card 0 fault CREATE_FLOW_TABLE function=pf count=1
rolled_back "the firmware fails while the mode changes" "PF $pf: setting the eswitch mode to switchdev failed"
fault_at_vfs switchdev
rolled_back "the firmware fails while the VFs are created again" "$pf: cannot create 4 VFs"
took "the section"

section "switchdev mode"
ls -di "/sys/bus/pci/devices/$pf"/virtfn*/ >/tmp/inodes.before
expect "host apply" vfpass host apply --allow-disruption
expect_equal "devlink reports switchdev mode" switchdev "$(devlink_mode)"
expect_equal "the PF has the VFs" 4 "$(vf_count "$pf")"
ls -di "/sys/bus/pci/devices/$pf"/virtfn*/ >/tmp/inodes.after
refuse "they are new ones" grep -qxFf /tmp/inodes.before /tmp/inodes.after
expect "each VF has a representor" wait_until 30 representors_are "pf0vf0 pf0vf1 pf0vf2 pf0vf3"
expect_contains "VF 1 keeps its MAC" 02:00:00:00:00:19 vf_attributes "$netdev" 1
expect_contains "a second host apply has nothing to do" '"actions": []' vfpass --json host apply
# representor INDEX: the netdev that vf list names.
representor() { vfpass --json vf list | jq -r ".vfs[] | select(.pf == \"$pf\" and .index == $1).representor"; }
for index in 0 1 2 3; do
    name=$(representor "$index")
    expect_equal "vf list names the representor of VF $index" "pf0vf$index" "$(cat "/sys/class/net/$name/phys_port_name")"
    expect_contains "the table, too" "$name (representor)" vfpass vf list
done
expect "hook install" vfpass hook install
mapping train0 rail0 "$pf" 'index: 1'
expect "attach" vfpass attach train0
expect_contains "status names the representor" "representor: train0 rail0: $(representor 1)" vfpass status
expect_equal "the JSON of status, too" "$(representor 1)" "$(vfpass status --json | jq -r '.leases[].representor')"
policy "$pf" 'embedded-switch-mode: legacy'
expect_exit 5 "a leased VF" vfpass host apply --allow-disruption
expect_said "the error names the domain" "VF 1 is leased to domain train0"
expect_equal "switchdev mode is kept" switchdev "$(devlink_mode)"
expect "detach" vfpass detach train0
expect "hook remove" vfpass hook remove
took "the section"

section "back to legacy mode, also after a change that failed"
vfpass --json vf list | jq 'del(.vfs[].representor, .vfs[].iommu_group)' >/tmp/vfs.before
fault_at_vfs legacy
expect_exit 1 "the firmware fails while the VFs are created again" vfpass host apply --allow-disruption
card 0 clear
expect_equal "switchdev mode is restored" switchdev "$(devlink_mode)"
expect "each VF has a representor" wait_until 30 representors_are "pf0vf0 pf0vf1 pf0vf2 pf0vf3"
vfpass --json vf list | jq 'del(.vfs[].representor, .vfs[].iommu_group)' >/tmp/vfs.after
expect_same_file "the VFs and their attributes are restored" /tmp/vfs.before /tmp/vfs.after
expect "host apply" vfpass host apply --allow-disruption
expect_equal "devlink reports legacy mode" legacy "$(devlink_mode)"
expect_equal "the PF keeps its VF count" 4 "$(vf_count "$pf")"
expect_equal "no representor is left" "" "$(representors)"
expect_equal "vf list names none" "" "$(vfpass vf list | grep representor)"
expect_contains "VF 1 keeps its MAC" 02:00:00:00:00:19 vf_attributes "$netdev" 1
expect_equal "the kernel has no warning" "" "$(dmesg | grep -E 'WARNING:|BUG:')"
policy "$pf" 'virtual-function-count: 8' 'up: false'
expect "host apply" vfpass host apply --allow-disruption
took "the section"

# killed_at COMMAND TEXT: kills host apply after it has printed TEXT, in the step in which the firmware takes long for COMMAND.
killed_at() {
    snapshot /tmp/host.before
    card 0 fault "$1" function=pf late=4000 count=1
    vfpass -v host apply 2>/tmp/apply.log &
    apply=$!
    expect "host apply reaches: $2" wait_until 30 grep -q "$2" /tmp/apply.log
    expect "host apply is killed" kill -KILL "$apply"
    wait "$apply" 2>/dev/null
}

# recovered TITLE: the host has the state from before the killed host apply.
recovered() {
    card 0 clear
    snapshot /tmp/host.after
    expect_same_file "$1" /tmp/host.before /tmp/host.after
}

section "host apply killed between removing and creating VFs"
ip link set dev "$netdev" vf 2 mac 02:00:00:00:00:27 vlan 27 trust on
policy "$pf" 'virtual-function-count: 5'
killed_at ENABLE_HCA 'create 5 VFs'
expect_contains "recover names the operation" "interrupted host apply of PF $pf" \
    sh -c 'vfpass recover 2>&1'
recovered "VF count, MAC, VLAN and trust are restored"
expect "a second recover has nothing to do" vfpass recover
recovered "after the second recover"

section "host apply killed while it removes VFs; the next host apply recovers"
killed_at DISABLE_HCA 'remove the VFs'
policy "$pf" 'virtual-function-count: 8'
expect_contains "host apply names the recovered operation" "interrupted host apply of PF $pf" \
    sh -c 'vfpass host apply 2>&1'
recovered "VF count, MAC, VLAN and trust are restored"
finish
