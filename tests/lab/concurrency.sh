# Attach while another domain is in a slow prepare on the same PF; and attaches that are killed.
# covers: src/apply src/state src/hook
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
start_libvirt
vfpass hook install
define_guest a
settle a
define_guest b

section "attach b while a is in a slow prepare on the same PF"
mapping a rail0 "$pf" 'vlan: {id: 11}'
mapping b rail0 "$pf" 'vlan: {id: 12}'
expect "attach a" vfpass attach a
vf_of "$pf" 0 >/sys/bus/pci/drivers/vfio-pci/unbind
# As after a reboot, the PF has no VFs, so prepare has to create them, slowly.
echo 0 >"/sys/bus/pci/devices/$pf/sriov_numvfs"
card 0 fault ENABLE_HCA function=pf late=5000 count=1
virsh start a >/tmp/start.log 2>&1 &
start=$!
expect "a is in prepare" wait_until 20 pgrep -f 'qemu.d/vfpass a prepare'
# It waits for the lock of the PF, and neither side reaches its deadline: both succeed.
expect "attach b" vfpass attach b
wait "$start"
expect "a has started" grep -q started /tmp/start.log
card 0 clear
expect_contains "a has VF 0" "vlan 11" vf_attributes "$netdev" 0
expect_contains "b has VF 1" "vlan 12" vf_attributes "$netdev" 1
virsh destroy a >/dev/null
expect "detach b" vfpass detach b
expect "detach a" vfpass detach a
expect "the last detach removed the VFs" test ! -e "/sys/bus/pci/devices/$pf/virtfn0"

snapshot() {
    snapshot_host /tmp/host.before "$pf"
    virsh dumpxml --inactive a >/tmp/xml.before
}
unchanged() {
    snapshot_host /tmp/host.after "$pf"
    virsh dumpxml --inactive a >/tmp/xml.after
    expect_same_file "$1: the host is restored" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is restored" /tmp/xml.before /tmp/xml.after
    expect "$1: no lease" no_lease
}
start_attach() {
    vfpass -v attach a 2>/tmp/attach.log &
    attach=$!
}
# killed_at TEXT: kills attach after it has printed TEXT, in a step that is still in progress.
killed_at() {
    expect "attach reaches: $1" wait_until 20 grep -q "$1" /tmp/attach.log
    expect "attach is killed" kill -KILL "$attach"
    wait "$attach" 2>/dev/null
}

section "attach killed while the PF creates VFs"
rm "$vms/b.yaml"
snapshot
card 0 fault ENABLE_HCA function=pf late=4000
start_attach
killed_at 'create 1 VF '
expect "recover" vfpass recover
card 0 clear
unchanged "killed during VF creation"
expect "a second recover has nothing to do" vfpass recover
unchanged "after the second recover"

section "attach killed during an unbind"
make_vfs "$pf" 4
snapshot
card 0 fault TEARDOWN_HCA function=vf0 never
start_attach
killed_at 'bind '
card 0 clear
expect "recover" vfpass recover
unchanged "killed during the unbind"

section "attach killed while libvirt defines the domain"
# Uses a MAC that the host's driver reads when it probes.
vf=$(vf_of "$pf" 0)
ip link set dev "$netdev" vf 0 mac 02:aa:00:00:00:0f
bind_to "$vf" mlx5_core
echo >"/sys/bus/pci/devices/$vf/driver_override"
snapshot
libvirtd_pid=$(libvirt_pid)
card 0 fault MODIFY_NIC_VPORT_CONTEXT function=pf late=1200
start_attach
expect "attach waits until the firmware has set the MAC" wait_until 20 grep -q 'configure PF' /tmp/attach.log
kill -STOP "$libvirtd_pid"
killed_at 'domain XML'
card 0 clear
kill -CONT "$libvirtd_pid"
expect "recover" vfpass recover
if virsh dumpxml --inactive a | grep -q ua-vfpass; then
    expect "libvirt had defined the domain: the attach was completed" vfpass plan a
    expect "detach" vfpass detach a
fi
unchanged "killed during the definition"
wait_until 60 test -d "/sys/bus/pci/devices/$vf/net"
expect_contains "the host's netdev has its MAC again" 02:aa:00:00:00:0f \
    ip -o link show dev "$(netdev_of "$vf")"
finish
