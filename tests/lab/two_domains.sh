# VM A runs with a VF. Nothing that happens to other domains affects A.
# covers: src/plan src/hook src/libvirt
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

section "A with VF 1 and an unmanaged VM"
install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
start_libvirt
vfpass hook install
define_guest a
define_guest b
define_guest unmanaged
mapping a rail0 "$pf" 'index: 1' 'mac: 02:00:00:00:0a:01' 'vlan: {id: 11}'
expect "attach a" vfpass attach a
expect "start a" virsh start a
expect "start the unmanaged VM" virsh start unmanaged
expect "A's agent answers" wait_for_agent a 400
vf=$(vf_of "$pf" 1)

a_is_unaffected() {
    expect_contains "$1: A's MAC is unchanged" "02:00:00:00:0a:01" vf_attributes "$netdev" 1
    expect_contains "$1: A's VLAN is unchanged" "vlan 11" vf_attributes "$netdev" 1
    expect "$1: A's VF stays on vfio-pci" test "$(driver_of "$vf")" = vfio-pci
    expect_contains "$1: A runs" running virsh domstate a
    expect "$1: A's guest still has its function" in_guest a 02:00:00:00:0a:01
    expect_contains "$1: A's lease is running" '"a","rail0"' sh -c "vfpass status --json | jq -c \
        '.leases[] | select(.state == \"running\") | [.domain.name, .entry]'"
}
a_is_unaffected "at first"

section "B with a copy of A's devices and metadata is refused"
virsh dumpxml --inactive a | sed -e 's|<name>a</name>|<name>b</name>|' \
    -e "s|<uuid>.*</uuid>|<uuid>$(virsh domuuid b | head -n 1)</uuid>|" >/tmp/b.xml
virsh define /tmp/b.xml >/dev/null
expect_exit 1 "start of the copy is refused" virsh start b
expect_said "the reason is printed" "copied"
a_is_unaffected "after the copy"

section "B with its own lease changed to A's VF is refused"
expect "detach clears the copied metadata" vfpass detach b
mapping b rail0 "$pf" 'index: 2'
expect "attach b" vfpass attach b
virsh dumpxml --inactive b >/tmp/b.xml
bus=$((16#$(cut -d: -f2 <<<"$vf"))) slot=$((16#$(cut -d: -f3 <<<"$vf" | cut -d. -f1)))
function=${vf##*.}
sed -i "/<hostdev/,/<\/source>/ s|<address domain=[^>]*/>|<address domain='0x0000' bus='$(printf 0x%02x "$bus")' slot='$(printf 0x%02x "$slot")' function='0x$function'/>|" /tmp/b.xml
virsh define /tmp/b.xml >/dev/null
expect_exit 1 "start on A's device is refused" virsh start b
expect_said "the reason is printed" "vfpass attach b"
a_is_unaffected "after the changed lease"

section "B with a plain hostdev for A's VF is refused by libvirt"
expect "detach b" vfpass detach b
define_with c "$vf"
expect_exit 1 "start of the plain claim is refused" virsh start c
a_is_unaffected "after the plain claim"

section "removing the programs and restarting libvirtd"
rm /usr/sbin/vfpass /usr/sbin/vfpass-qemu-hook
restart_libvirt
expect_contains "A keeps running" running virsh domstate a
expect_contains "the unmanaged VM keeps running" running virsh domstate unmanaged
install_vfpass
a_is_unaffected "after the restart"

section "restarting libvirtd with the hook installed"
restart_libvirt
a_is_unaffected "after the second restart"
expect_contains "the unmanaged VM keeps running" running virsh domstate unmanaged

section "a lost database: the leases are rebuilt from the XML"
rm -rf /var/lib/vfpass
expect "recover" vfpass recover
a_is_unaffected "after the loss"

section "libvirtd killed while A stops: recover scrubs the VF"
pid=$(libvirt_pid)
kill -STOP "$pid"
pkill -KILL -f 'guest=a,'
kill -KILL "$pid"
restart_libvirt
expect "libvirt reports A as shut off" wait_until 30 guest_off a
expect "recover" vfpass recover
refuse "A's VLAN is scrubbed" grep -q "vlan 11" <(vf_attributes "$netdev" 1)
expect "the lease is reserved" has_lease reserved
expect "detach a" vfpass detach a
finish
