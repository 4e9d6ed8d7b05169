# The PF level by host.yaml: counts, MTU, link; what anybody uses stays; and the hook's installation.
# covers: src/cli/apply_host.* src/cli/host*.cpp src/plan/host_* src/plan/disruption.cpp src/plan/recreate_vfs.* src/host/vf_count.*
# covers: src/host/link_settings.cpp src/config/host_reader.cpp src/cli/hook_files.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_standin
pf=$(pf_address 0) netdev=$(pf_netdev 0) other=$(pf_address 1)

# policy PF [LINE...]: host.yaml with one PF; further lines belong to it.
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

# refused TITLE TEXT: host apply ends with 5, names the holder, and changes nothing.
refused() {
    snapshot /tmp/host.before
    expect_exit 5 "$1" vfpass host apply
    expect_said "$1: the holder is named" "$2"
    snapshot /tmp/host.after
    expect_same_file "$1: nothing has changed" /tmp/host.before /tmp/host.after
}

section "host.yaml for the first time"
policy "$pf" 'virtual-function-count: 4' 'mtu: 9000' 'up: true'
expect_exit 3 "host show says that changes are pending" vfpass host show
expect_said "it shows the difference" "differs"
expect_exit 3 "a dry run ends as plan does" vfpass host apply --dry-run
expect_equal "and makes no VFs" 0 "$(vf_count "$pf")"
expect "host apply" vfpass host apply
expect_equal "as many VFs as asked for" 4 "$(vf_count "$pf")"
for index in 0 3; do
    expect_equal "the host's driver was kept off VF $index" "" "$(driver_of "$(vf_of "$pf" "$index")")"
done
expect_equal "autoprobe is as it was" 1 "$(cat "/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe")"
expect_contains "the MTU is set" "mtu 9000" ip -o link show dev "$netdev"
expect_contains "the link is up" ",UP" ip -o link show dev "$netdev"
expect_equal "the PF that host.yaml does not name has no VFs" 0 "$(vf_count "$other")"
expect "host show has nothing to say" vfpass host show
refuse "no difference is left" grep -q differs <(vfpass host show)

section "the same again changes nothing"
snapshot /tmp/host.before
ls -di "/sys/bus/pci/devices/$pf"/virtfn*/ >/tmp/inodes.before
expect "host apply again" vfpass host apply
expect_contains "no action is told" '"actions": []' vfpass --json host apply
snapshot /tmp/host.after
ls -di "/sys/bus/pci/devices/$pf"/virtfn*/ >/tmp/inodes.after
expect_same_file "the host is as it was" /tmp/host.before /tmp/host.after
expect_same_file "the VFs are the same ones" /tmp/inodes.before /tmp/inodes.after

section "another count, nobody uses a VF"
policy "$pf" 'virtual-function-count: 6'
expect_exit 3 "host show sees it" vfpass host show
expect "host apply" vfpass host apply
expect_equal "the new count" 6 "$(vf_count "$pf")"
expect_contains "an MTU that is not in host.yaml stays" "mtu 9000" ip -o link show dev "$netdev"

section "values that others set survive a change of count"
ip link set dev "$netdev" vf 1 mac 02:00:00:00:00:17 vlan 17
ip link set dev "$netdev" vf 4 trust on
vf_attributes "$netdev" 1 >/tmp/vf1.before
vf_attributes "$netdev" 4 >/tmp/vf4.before
policy "$pf" 'virtual-function-count: 7'
expect_exit 3 "a dry run" vfpass host apply --dry-run
expect_said "names the values" "mac 02:00:00:00:00:17"
expect_said "and why" "because others have set these values"
expect "host apply" vfpass host apply
expect_equal "the new count" 7 "$(vf_count "$pf")"
vf_attributes "$netdev" 1 >/tmp/vf1.after
vf_attributes "$netdev" 4 >/tmp/vf4.after
expect_same_file "VF 1 has its MAC and VLAN" /tmp/vf1.before /tmp/vf1.after
expect_same_file "VF 4 is trusted" /tmp/vf4.before /tmp/vf4.after
policy "$pf" 'virtual-function-count: 6'
expect "host apply, one less" vfpass host apply
vf_attributes "$netdev" 1 >/tmp/vf1.after
expect_same_file "VF 1 has them still" /tmp/vf1.before /tmp/vf1.after

section "changes that the host notices need consent"
ip addr add 192.0.2.1/24 dev "$netdev"
policy "$pf" 'virtual-function-count: 5'
refused "a PF with an address" "netdev $netdev has address 192.0.2.1/24"
expect_exit 5 "a dry run without consent" vfpass host apply --dry-run
expect_said "tells the remedy" "host apply --allow-disruption"
expect_exit 3 "a dry run with consent" vfpass host apply --dry-run --allow-disruption
expect_said "the step is marked" "disrupts: the host can notice this"
expect "host apply with consent" vfpass host apply --allow-disruption
expect_equal "the new count" 5 "$(vf_count "$pf")"
ip addr del 192.0.2.1/24 dev "$netdev"
modprobe bonding
ip link add bond9 type bond
ip link set dev "$netdev" down
ip link set dev "$netdev" master bond9
policy "$pf" 'virtual-function-count: 6'
refused "a PF in a bond" "netdev $netdev is below bond9"
policy "$pf" 'virtual-function-count: 6' 'allow-disruption: true'
expect "host apply with consent in host.yaml" vfpass host apply
expect_equal "the new count" 6 "$(vf_count "$pf")"
ip link set dev "$netdev" nomaster
ip link del bond9
ip link set dev "$netdev" mtu 9000 up

section "what host.yaml may not ask for"
policy "$pf" 'virtual-function-count: 9'
expect_exit 2 "more than the device can have" vfpass host apply
expect_said "both numbers are told" "9 VFs are wanted, but PF $pf ($netdev) can have 8"
policy "0000:7f:00.0" 'virtual-function-count: 4'
expect_exit 2 "a PF that is not there" vfpass host apply
expect_said "the place is named" "host.yaml:3:"
policy "$pf" 'serial: MT2116X00000' 'virtual-function-count: 4'
refused "the wrong card" "MT2116X00000"
policy "$pf" 'embedded-switch-mode: switchdev'
expect_exit 1 "an eswitch mode without devlink" vfpass host apply
expect_said "the reason is told" "its driver shows no eswitch mode over devlink"
expect_equal "no VF was touched" 6 "$(vf_count "$pf")"
policy "$pf" 'virtual-function-counts: 4'
expect_exit 2 "a key that does not exist" vfpass host apply
expect_said "the right one is suggested" "virtual-function-count"

section "a driver that gives fewer VFs, or is busy"
standin_parameter numvfs_limit 2
policy "$pf" 'virtual-function-count: 4'
expect_exit 1 "fewer than asked for" vfpass host apply
expect_said "the message" "4 VFs asked for, but only 2 VFs appeared; those were removed again"
expect_said "the old count cannot come back either" "rolling back failed"
expect_equal "none of them is left" 0 "$(vf_count "$pf")"
standin_parameter numvfs_limit 0
policy "$pf" 'virtual-function-count: 6'
expect "the next host apply brings the old count back" vfpass host apply
expect_equal "as many as before" 6 "$(vf_count "$pf")"
policy "$pf" 'virtual-function-count: 4'
standin_parameter numvfs_busy Y
expect_exit 1 "EBUSY" vfpass host apply
expect_said "the message" "the driver is busy and changes no VFs now"
standin_parameter numvfs_busy N
expect "host apply when it is over" vfpass host apply
expect_equal "the VFs are there" 4 "$(vf_count "$pf")"

section "a VF's netdev is up"
vf=$(vf_of "$pf" 2)
bind_to "$vf" mlx5_core
vf_netdev=$(netdev_of "$vf")
ip link set dev "$vf_netdev" up
policy "$pf" 'virtual-function-count: 8'
refused "a netdev that is up" "VF 2 ($(vf_of "$pf" 2)): its netdev $vf_netdev is up"
ip link set dev "$vf_netdev" down

section "a VF is on vfio-pci"
bind_to "$vf" vfio-pci
refused "a VF on vfio-pci" "VF 2 ($vf) is on vfio-pci"
echo "$vf" >/sys/bus/pci/drivers/vfio-pci/unbind
echo >"/sys/bus/pci/devices/$vf/driver_override"

section "a VF is leased; the hook stays as long as the lease"
start_libvirt
printf '#!/bin/sh\nexit 0\n' >/etc/libvirt/hooks/qemu.d/10-own
chmod 0755 /etc/libvirt/hooks/qemu.d/10-own
stat -c '%n %i %s %a %Y' /etc/libvirt/hooks/qemu.d/* >/tmp/hooks.before
expect "hook install" vfpass hook install
expect_contains "installing again does nothing" "already installed" vfpass hook install
define_guest train0
mapping train0 rail0 "$pf" 'index: 1'
expect "attach" vfpass attach train0
refused "a leased VF" "VF 1 is leased to train0"
policy "$pf" 'up: false'
refused "taking the link down under a lease" "VF 1 is leased to train0"
expect_exit 5 "hook remove while there are leases" vfpass hook remove
expect_said "the VM is named" "train0"
expect "the hook is still there" test -L /etc/libvirt/hooks/qemu.d/vfpass
expect "detach" vfpass detach train0
expect "hook remove" vfpass hook remove
refuse "the hook is gone" test -e /etc/libvirt/hooks/qemu.d/vfpass
stat -c '%n %i %s %a %Y' /etc/libvirt/hooks/qemu.d/* >/tmp/hooks.after
expect_same_file "the administrator's own hooks are untouched" /tmp/hooks.before /tmp/hooks.after
policy "$pf" 'virtual-function-count: 8' 'up: false'
refused "a link that is up is not taken down without consent" "netdev $netdev is up"
expect "nobody uses a VF any more: host apply" vfpass host apply --allow-disruption
expect_equal "the count" 8 "$(vf_count "$pf")"
refuse "the link is down" grep -q ',UP' <(ip -o link show dev "$netdev")
expect "host show has nothing to say" vfpass host show

# killed_at TEXT: host apply is killed once it has said that it does this, while it cannot have ended.
killed_at() {
    snapshot /tmp/host.before
    standin_parameter configure_delay_ms 4000
    vfpass -v host apply 2>/tmp/apply.log &
    apply=$!
    expect "host apply does: $1" wait_until 30 grep -q "$1" /tmp/apply.log
    expect "host apply is killed" kill -KILL "$apply"
    wait "$apply" 2>/dev/null
}

# recovered TITLE: the host is as it was before the killed host apply.
recovered() {
    standin_parameter configure_delay_ms 0
    snapshot /tmp/host.after
    expect_same_file "$1" /tmp/host.before /tmp/host.after
}

section "host apply killed between removing and creating VFs"
ip link set dev "$netdev" vf 2 mac 02:00:00:00:00:27 vlan 27 trust on
policy "$pf" 'virtual-function-count: 5'
killed_at 'create 5 VFs'
expect_contains "recover names what it ended" "interrupted host apply of PF $pf" \
    sh -c 'vfpass recover 2>&1'
recovered "count, MAC, VLAN and trust are as before"
expect "a second recover has nothing to do" vfpass recover
recovered "after the second recover"

section "host apply killed while it removes VFs; the next one ends that by itself"
killed_at 'remove the VFs'
policy "$pf" 'virtual-function-count: 8'
expect_contains "host apply names what it ended" "interrupted host apply of PF $pf" \
    sh -c 'vfpass host apply 2>&1'
recovered "count, MAC, VLAN and trust are as before"
finish
