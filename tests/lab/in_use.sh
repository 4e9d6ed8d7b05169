# A device in use is never attached, changed, reset or unbound, whether a running guest, a container, a libvirt
# network's pool or a domain that is being started uses it.
# covers: src/host/holders src/plan/judge_holders.cpp src/plan/owner_objections.cpp src/plan/plan_hook.cpp src/apply/holder_gate.cpp src/hook src/libvirt tests/lab/local_user.py
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
other=$(pf_address 1) other_netdev=$(pf_netdev 1)
make_vfs "$pf" 4
make_vfs "$other" 4
start_libvirt
vfpass hook install
define_guest a
settle a
define_guest b
settle b

# remember, unchanged TITLE: save and compare the host, a's XML and the leases.
remember() {
    snapshot_host /tmp/host.before "$pf" "$other"
    virsh dumpxml --inactive --security-info a >/tmp/xml.before
    leases >/tmp/leases.before
}
unchanged() {
    snapshot_host /tmp/host.after "$pf" "$other"
    virsh dumpxml --inactive --security-info a >/tmp/xml.after
    leases >/tmp/leases.after
    expect_same_file "$1: the host is unchanged" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is unchanged" /tmp/xml.before /tmp/xml.after
    expect_same_file "$1: the leases are unchanged" /tmp/leases.before /tmp/leases.after
}
# refused TITLE TEXT COMMAND...: COMMAND ends with exit code 5 and this error, and changes nothing.
refused() {
    local title=$1 text=$2
    shift 2
    remember
    expect_exit 5 "$title" "$@"
    expect_said "$title: the error names the holder" "$text"
    unchanged "$title"
}
holds_vfio() {
    test -n "$(find "/proc/$(cat "/run/libvirt/qemu/$1.pid")/fd" -lname '/dev/vfio/[0-9]*')"
}

section "a connection to another libvirt"
mapping a rail0 "$pf" 'index: 1' 'mac: 02:00:00:00:0a:01' 'vlan: {id: 11}'
expect "attach a" vfpass attach a
expect "start a" virsh start a
expect "a's QEMU holds the VF" wait_until 60 holds_vfio a
vf=$(vf_of "$pf" 1)
remember
for command in gc recover 'detach a' 'attach a'; do
    # shellcheck disable=SC2086  # two words
    expect_exit 2 "$command over the test driver" vfpass --connect test:///default $command
    expect_said "$command: the reason" "not the system libvirt"
done
unchanged "over the test driver"
expect_contains "a's XML still has its hostdev" ua-vfpass-rail0 virsh dumpxml a
expect "gc over the system libvirt changes nothing" vfpass gc
unchanged "gc"
virsh --quiet destroy a

section "a domain defined by hand runs on a's VF"
hostdev_xml "$vf" 1 no >/tmp/hostdev.xml
define_guest c --device /tmp/hostdev.xml
expect "start c" virsh start c
expect "c's QEMU holds the VF" wait_until 60 holds_vfio c
refused "detach a" "domain c" vfpass detach a
mapping a rail0 "$pf" 'index: 1' 'mac: 02:00:00:00:0a:01' 'vlan: {id: 12}'
refused "attach a with another VLAN" "domain c" vfpass attach a
remember
expect_exit 1 "start of a" virsh start a
unchanged "start of a"
virsh --quiet undefine a
expect "gc keeps the lease of a mapped domain" vfpass gc
expect_said "gc prints the reason" "a mapping names it"
mv "$vms/a.yaml" /tmp/
expect_exit 5 "gc of a deleted domain's lease" vfpass gc
expect_said "the error names the holder" "domain c"
snapshot_host /tmp/host.after "$pf" "$other"
expect_same_file "gc: the host is unchanged" /tmp/host.before /tmp/host.after
expect "gc: the lease is kept" has_lease a
virsh --quiet define /tmp/xml.before
mv /tmp/a.yaml "$vms/"
expect "a's VF stays on vfio-pci" test "$(driver_of "$vf")" = vfio-pci
virsh --quiet destroy c
virsh --quiet undefine c
expect "detach a after c has stopped" vfpass detach a
expect "the VF's driver is restored" test "$(driver_of "$vf")" = mlx5_core

section "a VF's netdev in a container's network namespace"
ip netns add box
vf_netdev=$(netdev_of "$(vf_of "$pf" 0)")
ip link set dev "$vf_netdev" netns box
ip -n box link set dev "$vf_netdev" up
mapping b rail0 "$pf" 'index: 0'
refused "attach of a VF in a container" "namespace box" vfpass attach b
ip -n box link set dev "$vf_netdev" down
refused "attach of a VF in a container, with its netdev down" "namespace box" vfpass attach b
mapping b rail0 "$pf" 'index: auto'
expect "attach with index auto" vfpass attach b
expect "attach takes another VF" test "$(driver_of "$(vf_of "$pf" 0)")" = mlx5_core
expect_contains "the container keeps its netdev" "$vf_netdev" ip -n box link show
expect "detach b" vfpass detach b
ip netns del box
expect "the netdev is in our namespace again" wait_until 20 test -n "$(netdev_of "$(vf_of "$pf" 0)")"

section "other users of the host cannot prevent a start"
mapping b rail0 "$pf" 'index: 0'
attacked=$(vf_of "$pf" 0)
for kind in name links; do
    attack "$kind" "$attacked"
    expect "$kind: attach b" vfpass attach b
    expect "$kind: start b" virsh start b
    expect "$kind: b's QEMU holds the VF" wait_until 60 holds_vfio b
    virsh --quiet destroy b
    expect "$kind: detach b" vfpass detach b
    end_attack
done

section "a libvirt network with a pool of VFs"
ip link set dev "$other_netdev" up
cat >/tmp/pool.xml <<XML
<network><name>pool</name><forward mode='hostdev' managed='yes'><pf dev='$other_netdev'/></forward></network>
XML
expect "the pool is defined" virsh net-define /tmp/pool.xml
expect "the pool is active" virsh net-start pool
mapping b rail0 "$other" 'index: 0'
refused "attach of a VF of the pool" "network pool" vfpass attach b
echo "<interface type='network'><source network='pool'/></interface>" >/tmp/nic.xml
define_guest p --device /tmp/nic.xml
expect "a domain starts on the pool" virsh start p
expect "its QEMU holds a VF" wait_until 60 holds_vfio p
refused "attach of the VF that the domain has" "domain p" vfpass attach b
virsh --quiet destroy p
virsh --quiet undefine p
virsh --quiet net-destroy pool
virsh --quiet net-undefine pool
expect "attach after the pool is removed" vfpass attach b
expect "detach b" vfpass detach b
ip link set dev "$other_netdev" down

lock_is_held() { ! flock -n "/run/vfpass/pf-$pf.lock" true; }

section "a start while a detach waits for the PF's lock"
mapping a rail0 "$pf" 'index: 1' 'mac: 02:00:00:00:0a:01' 'vlan: {id: 11}'
expect "attach a" vfpass attach a
mkfifo /tmp/release
flock "/run/vfpass/pf-$pf.lock" sh -c 'read -r _ </tmp/release' &
expect "the lock is held" wait_until 5 lock_is_held
vfpass detach a >/tmp/detach.log 2>&1 &
detach=$!
expect "detach waits for it" wait_until 30 grep -q -e '->' /proc/locks
virsh start a >/tmp/start.log 2>&1 &
start=$!
echo >/tmp/release
wait "$detach"
detached=$?
wait "$start"
started=$?
echo "detach ended with $detached, the start with $started"
sed 's/^/   /' /tmp/detach.log /tmp/start.log
whole() {
    if guest_running a && grep -q ua-vfpass-rail0 <(virsh dumpxml a); then
        expect_contains "$1: its VLAN is set" "vlan 11" vf_attributes "$netdev" 1
        expect "$1: its VF is on vfio-pci" test "$(driver_of "$vf")" = vfio-pci
        expect_contains "$1: its inactive XML has the device" ua-vfpass-rail0 virsh dumpxml --inactive a
        expect "$1: it has a lease" has_lease a
    else
        expect "$1: the VF's driver is restored" test "$(driver_of "$vf")" = mlx5_core
        expect "$1: no lease" no_lease
    fi
}
whole "after both"
expect "recover" vfpass recover
whole "after recover"
expect "at least one of the two succeeded" test "$detached" = 0 -o "$started" = 0
virsh --quiet destroy a 2>/dev/null
vfpass detach a >/dev/null 2>&1
expect "the VF's driver is restored" test "$(driver_of "$vf")" = mlx5_core
expect "no lease" no_lease
finish
