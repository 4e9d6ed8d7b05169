# Attach while another domain sits in a slow prepare on the same PF; and killed attaches.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_standin
pf=$(pf_address 0) netdev=$(pf_netdev 0)
start_libvirt
vfpass hook install
define_guest a
settle a
define_guest b

section "attach b while a sits in a slow prepare on the same PF"
mapping a rail0 "$pf" 'vlan: {id: 11}'
mapping b rail0 "$pf" 'vlan: {id: 12}'
expect "attach a" vfpass attach a
vf_of "$pf" 0 >/sys/bus/pci/drivers/vfio-pci/unbind
# A reboot would leave the PF without VFs; prepare then has to make them, slowly.
echo 0 >"/sys/bus/pci/devices/$pf/sriov_numvfs"
standin_parameter configure_delay_ms 5000
virsh start a >/tmp/start.log 2>&1 &
start=$!
wait_until 20 pgrep -f 'vfpass-qemu-hook a prepare'
began=$SECONDS
expect "attach b" vfpass attach b
took=$((SECONDS - began))
wait "$start"
expect "a has started" grep -q started /tmp/start.log
expect "nobody waited for a deadline ($took s)" test "$took" -lt 15
standin_parameter configure_delay_ms 0
expect_contains "a has VF 0" "vlan 11" vf_attributes "$netdev" 0
expect_contains "b has VF 1" "vlan 12" vf_attributes "$netdev" 1
virsh destroy a >/dev/null
expect "detach b" vfpass detach b
expect "detach a" vfpass detach a
expect "the last detach removed the VFs" test ! -e "/sys/bus/pci/devices/$pf/virtfn0"

section "attach killed while the kernel is at work"
make_vfs "$pf" 4
rm "$vms/b.yaml"
snapshot_host /tmp/host.before "$pf"
virsh dumpxml --inactive a >/tmp/xml.before
killed_while() {
    wait_until 20 "$@"
    kill -KILL "$attach"
    wait "$attach" 2>/dev/null
}
unchanged() {
    snapshot_host /tmp/host.after "$pf"
    virsh dumpxml --inactive a >/tmp/xml.after
    expect_same_file "$1: the host is as before" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is as before" /tmp/xml.before /tmp/xml.after
    expect "$1: no lease" no_lease
}
# libvirtd stands still, so attach waits for it in its last step.
libvirtd_pid=$(cat /run/libvirtd.pid)
for delay in 0 1 2; do
    vfpass -v attach a 2>/tmp/attach.log &
    attach=$!
    case $delay in
    0) killed_while grep -q 'lease VF' /tmp/attach.log ;;
    1) killed_while grep -q 'configure on PF' /tmp/attach.log ;;
    2) killed_while grep -q 'bind ' /tmp/attach.log ;;
    esac
    vfpass recover
    if virsh dumpxml --inactive a | grep -q ua-vfpass; then
        expect "killed too late: attach is complete" vfpass plan a
        expect "detach" vfpass detach a
    fi
    unchanged "killed at point $delay"
    expect "a second recover changes nothing" vfpass recover
    unchanged "after the second recover ($delay)"
done

section "attach killed while libvirt defines"
vfpass -v attach a 2>/tmp/attach.log &
attach=$!
wait_until 20 grep -q 'bind ' /tmp/attach.log
kill -STOP "$libvirtd_pid"
wait_until 20 grep -q "domain's XML" /tmp/attach.log
kill -KILL "$attach"
wait "$attach" 2>/dev/null
kill -CONT "$libvirtd_pid"
expect "recover" vfpass recover
if virsh dumpxml --inactive a | grep -q ua-vfpass; then
    expect "the attach was finished" vfpass plan a
    expect "detach" vfpass detach a
fi
unchanged "killed at libvirt"
finish
