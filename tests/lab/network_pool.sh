# VFs in libvirt's own pools (<forward mode='hostdev'>): vfpass does not use them, names the network that claims
# them, and reports a pool that contains a leased VF.
# covers: src/domain/parse_domain.cpp src/plan/owner_objections.cpp src/plan/choose_vf.cpp src/commands/drift.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
ip link set dev "$netdev" up
start_libvirt
vfpass hook install

# pool_of_pf: a network with all VFs of the PF. pool_of INDEX...: a network with these VFs.
pool_of_pf() {
    echo "<network><name>pool</name><forward mode='hostdev' managed='yes'><pf dev='$netdev'/></forward></network>"
}
pool_of() {
    local index
    echo "<network><name>pool</name><forward mode='hostdev' managed='yes'>"
    for index in "$@"; do
        address_xml "$(vf_of "$pf" "$index")" | sed "s/<address/<address type='pci'/"
    done
    echo "</forward></network>"
}
define_pool() {
    "$@" >/tmp/pool.xml
    virsh --quiet net-define /tmp/pool.xml
}
remove_pool() {
    virsh --quiet net-destroy pool
    virsh --quiet net-undefine pool
}
pool_guest() {
    echo "<interface type='network'><source network='pool'/></interface>" >/tmp/nic.xml
    define_tiny "$1" --device /tmp/nic.xml
}
# vf_in NAME: the VF from QEMU's arguments, because the XML names only the network.
vf_in() { tr '\0' '\n' <"/proc/$(qemu_of "$1")/cmdline" | grep -o '"host":"[^"]*"'; }

define_tiny b
refused_for_pool() {
    snapshot_host /tmp/host.before "$pf"
    expect_exit 5 "$1" vfpass attach b
    expect_said "$1: the error names the network" "libvirt network pool"
    snapshot_host /tmp/host.after "$pf"
    expect_same_file "$1: the host is unchanged" /tmp/host.before /tmp/host.after
    expect "$1: no lease" no_lease
}

section "an inactive network claims its PF's VFs"
expect "the network is defined" define_pool pool_of_pf
mapping b rail0 "$pf" 'index: 0'
refused_for_pool "attach of a named VF"
mapping b rail0 "$pf"
refused_for_pool "attach of any VF"
expect_exit 5 "check refuses too" vfpass check b
expect_said "the error names the network" "libvirt network pool"
virsh --quiet net-undefine pool

section "a pool of individual VFs: vfpass uses another VF"
expect "the network is defined" define_pool pool_of 0 1
expect "the network is started" virsh net-start pool
mapping b rail0 "$pf" 'vlan: {id: 12}'
expect "attach b" vfpass attach b
expect_equal "b has the first VF outside the pool" "[\"b\",\"rail0\",\"$(vf_of "$pf" 2)\",\"reserved\"]" "$(leases)"
expect "no drift" vfpass status b
expect "b starts" start_paused b
pool_guest p0
pool_guest p1
pool_guest p2
expect "a guest of the pool starts" start_paused p0
expect "another guest of the pool starts" start_paused p1
refuse "the pool has no third VF" start_paused p2
expect_contains "b's VF has its VLAN" "vlan 12" vf_attributes "$netdev" 2
expect_equal "the guests of the pool have two VFs" 2 "$({ vf_in p0; vf_in p1; } | sort -u | wc -l)"
mapping other rail0 "$pf" 'index: 1'
define_tiny other
expect_exit 5 "attach of a VF that a pool's guest has" vfpass attach other
expect_said "the error names the network" "libvirt network pool"
expect "the network is stopped while its guests run" virsh net-destroy pool
expect_exit 5 "attach of that VF" vfpass attach other
expect_said "the error names the inactive network" "libvirt network pool"
virsh --quiet net-undefine pool
expect_exit 5 "attach of that VF after the network is undefined" vfpass attach other
expect_said "the error names the guest" "domain p1"
stop_hard p0
stop_hard p1
rm "$vms/other.yaml"

section "a pool with b's VF is defined while b runs"
expect "the network is defined" define_pool pool_of 2
expect "the network is started" virsh net-start pool
expect_exit 3 "status reports drift" vfpass status b
expect_said "the error names the network" "libvirt network pool"
refuse "the pool's guest cannot start" start_paused p0
expect_contains "b's VF has its VLAN" "vlan 12" vf_attributes "$netdev" 2
expect "b still holds its VF" holds_vf b
expect "attach of b changes nothing" vfpass attach b
stop_hard b

section "the pool's guest gets b's VF while b is off"
expect "the pool's guest starts" start_paused p0
expect "its QEMU holds the VF" wait_until 30 holds_vf p0
expect_exit 1 "b cannot start" start_paused b
expect_said "the error names the guest" "domain p0"
expect_exit 5 "detach b" vfpass detach b
expect_said "the error names the guest" "domain p0"
stop_hard p0
expect "b starts again" start_paused b
expect_contains "b's VF has its own VLAN" "vlan 12" vf_attributes "$netdev" 2
stop_hard b
remove_pool
expect "no drift after the pool is removed" vfpass status b

section "a pool of a PF with one VF leased to b"
expect "the network is defined" define_pool pool_of_pf
expect "the network is started" virsh net-start pool
expect_exit 3 "status reports drift" vfpass status b
expect_said "the remedy is printed" "remove it from the network"
expect "a guest of the pool starts" start_paused p0
expect "another guest of the pool starts" start_paused p1
expect "b starts" start_paused b
refuse "the third guest of the pool does not get b's VF" start_paused p2
expect_contains "b's VF has its VLAN" "vlan 12" vf_attributes "$netdev" 2
for vm in p0 p1 b; do stop_hard "$vm"; done
remove_pool
expect "detach b" vfpass detach b
expect "no lease" no_lease
expect_equal "the driver of b's VF is restored" mlx5_core "$(driver_of "$(vf_of "$pf" 2)")"
finish
