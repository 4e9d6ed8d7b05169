# libvirtd is killed at each stage of a start and of a stop, and restarted. Afterwards the guest either runs with its
# VF or is off; if it is off, `recover` at most scrubs the VF, and the next start works.
# covers: src/hook src/apply src/libvirt
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
vf=''
start_libvirt
vfpass hook install

# Hooks before and after ours that stop at the points where a "hold" file exists and create an "at" file.
gate=/run/gate
mkdir "$gate"
for name in 10-before zz-after; do
    cat >"/etc/libvirt/hooks/qemu.d/$name" <<HOOK
#!/bin/bash
cat >/dev/null
point=$name-\$2
[ -e $gate/hold-\$point ] || exit 0
touch $gate/at-\$point
while [ -e $gate/hold-\$point ]; do sleep 0.1; done
HOOK
    chmod 755 "/etc/libvirt/hooks/qemu.d/$name"
done
reload_libvirt
hold() { touch "$gate/hold-$1"; }
held() { test -e "$gate/at-$1"; }
release_hooks() { rm -f "$gate"/hold-* "$gate"/at-*; }
hooks_ended() { ! pgrep -f 'hooks/qemu.d/' >/dev/null; }

kill_libvirtd() {
    local pid
    pid=$(cat /run/libvirtd.pid)
    kill -KILL "$pid"
    wait_until 120 process_gone "$pid"
}
boot_libvirt() { rm -f /run/libvirtd.pid; libvirtd -d && wait_until "${LIBVIRT_DEADLINE:-60}" virsh list; }
no_qemu() { ! qemu_of a >/dev/null; }
settled_off() { guest_off a && no_qemu; }

define_tiny a
mapping a rail0 "$pf" 'index: 1' 'mac: 02:00:00:00:0a:01' 'vlan: {id: 11}'
virsh dumpxml --inactive a >/tmp/xml.detached
expect "attach a" vfpass attach a
virsh dumpxml --inactive a >/tmp/xml.attached
vf=$(vf_of "$pf" 1)
# A first run: after it, the attributes are neutral until the next prepare.
expect "a starts" start_paused a
stop_hard a

# converges TITLE: the guest is off, recover cleans up whatever is left, and the next start works.
converges() {
    expect "$1: a is off" wait_until 120 settled_off
    expect "$1: recover" vfpass recover
    expect_equal "$1: the lease is reserved" reserved "$(lease_state a)"
    refuse "$1: the VF's VLAN is scrubbed" grep -q "vlan 11" <(vf_attributes "$netdev" 1)
    expect "$1: no drift" vfpass status a
    expect_equal "$1: a second recover has nothing to do" "vfpass: nothing to do: no operation was interrupted" "$(vfpass recover 2>&1)"
    expect "$1: a starts" start_paused a
    expect "$1: a holds its VF" holds_vf a
    expect_contains "$1: the VF has its VLAN" "vlan 11" vf_attributes "$netdev" 1
    expect_equal "$1: the lease is running" running "$(lease_state a)"
    stop_hard a
    expect_equal "$1: the lease is reserved after the stop" reserved "$(lease_state a)"
    virsh dumpxml --inactive a >/tmp/xml.now
    expect_same_file "$1: the inactive XML is unchanged" /tmp/xml.attached /tmp/xml.now
}
# start_held POINT: begins a start that stops at POINT.
start_held() {
    hold "$1"
    virsh start --paused a >/tmp/start.log 2>&1 &
    expect "the start reaches $1" wait_until 120 held "$1"
}

section "killed before our prepare"
start_held 10-before-prepare
kill_libvirtd
release_hooks
expect "the hooks end" wait_until 120 hooks_ended
expect "libvirtd" boot_libvirt
converges "before prepare"

section "killed while our prepare creates the VFs"
echo "$vf" >/sys/bus/pci/drivers/vfio-pci/unbind
echo 0 >"/sys/bus/pci/devices/$pf/sriov_numvfs"
card 0 fault ENABLE_HCA function=pf late=4000 count=1
virsh start --paused a >/tmp/start.log 2>&1 &
expect "a is in prepare" wait_until 120 pgrep -f 'qemu.d/vfpass a prepare'
kill_libvirtd
expect "status fails without libvirt" test "$(vfpass status >/dev/null 2>&1; echo $?)" = 1
expect "libvirtd" boot_libvirt
card 0 clear
# The hook of the dead daemon may still be at work: this start waits for it, or takes over.
expect "an immediate start works" start_paused a
expect "the killed daemon's hook has ended" wait_until 120 hooks_ended
expect "a holds its VF" holds_vf a
expect_contains "the VF has its VLAN" "vlan 11" vf_attributes "$netdev" 1
expect_equal "the lease is running" running "$(lease_state a)"
expect "no drift" vfpass status a
stop_hard a
converges "in prepare"

for point in zz-after-prepare 10-before-start zz-after-start; do
    section "killed at $point: after our prepare, before QEMU runs"
    start_held "$point"
    kill_libvirtd
    release_hooks
    expect "the hooks end" wait_until 120 hooks_ended
    expect "libvirtd" boot_libvirt
    expect "a is off" wait_until 120 settled_off
    expect_exit 3 "status" vfpass status a
    expect_said "the remedy is vfpass recover" "vfpass recover"
    converges "at $point"
done

for point in 10-before-started zz-after-started; do
    section "killed at $point: QEMU runs, the guest's processors are still stopped"
    start_held "$point"
    expect "QEMU runs" qemu_of a
    kill_libvirtd
    release_hooks
    expect "the hooks end" wait_until 120 hooks_ended
    expect "libvirtd" boot_libvirt
    expect "libvirtd has reconnected to the guest or ended it" wait_until 120 vfpass status
    if is_active a; then
        expect_equal "the guest keeps running and its lease is running" running "$(lease_state a)"
        expect "a holds its VF" holds_vf a
        expect_contains "the VF has its VLAN" "vlan 11" vf_attributes "$netdev" 1
        stop_hard a
    fi
    converges "at $point"
done

section "killed while the guest runs"
expect "a starts" start_paused a
qemu=$(qemu_of a)
kill_libvirtd
expect_equal "QEMU keeps running" "$qemu" "$(qemu_of a)"
expect "libvirtd" boot_libvirt
expect "a is active" is_active a
expect_equal "QEMU is the same process" "$qemu" "$(qemu_of a)"
expect_equal "the lease is running" running "$(lease_state a)"
expect "no drift" vfpass status a
expect "attach changes nothing" vfpass attach a
expect "recover changes nothing" vfpass recover
expect "gc changes nothing" vfpass gc
expect "a holds its VF" holds_vf a

section "killed during a stop, before our release"
hold 10-before-release
virsh destroy a >/dev/null 2>&1 &
expect "the stop reaches release" wait_until 120 held 10-before-release
kill_libvirtd
release_hooks
expect "the hooks end" wait_until 120 hooks_ended
expect "libvirtd" boot_libvirt
converges "before release"

section "killed during a stop, after our release"
expect "a starts" start_paused a
hold zz-after-release
virsh destroy a >/dev/null 2>&1 &
expect "the stop reaches the hook after ours" wait_until 120 held zz-after-release
kill_libvirtd
release_hooks
expect "the hooks end" wait_until 120 hooks_ended
expect "libvirtd" boot_libvirt
converges "after release"

section "the guest's QEMU is killed while no daemon runs"
expect "a starts" start_paused a
kill_libvirtd
kill -KILL "$(qemu_of a)"
expect "libvirtd" boot_libvirt
converges "a killed guest"

section "detach at the end"
expect "detach a" vfpass detach a
expect "no lease" no_lease
virsh dumpxml --inactive a >/tmp/xml.now
expect_same_file "the XML is restored" /tmp/xml.detached /tmp/xml.now
finish
