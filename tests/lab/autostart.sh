# Domains with autostart, when libvirtd starts before, during and after `vfpass host apply` (our unit at boot) creates
# the VFs that they need. A boot is simulated: no VFs, no daemon, nothing in /run.
# covers: src/hook packaging src/apply
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

# policy COUNT: writes host.yaml.
policy() {
    printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    virtual-function-count: %s\n' "$pf" "$1" \
        >/etc/vfpass/host.yaml
}

section "autostart of three domains with VFs and one without"
install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
policy 4
expect "host apply creates the VFs" vfpass host apply
start_libvirt
vfpass hook install
index=0
for vm in a b c; do
    define_tiny "$vm"
    mapping "$vm" rail0 "$pf" "index: $index" "vlan: {id: 1$index}"
    expect "attach $vm" vfpass attach "$vm"
    virsh --quiet autostart "$vm"
    index=$((index + 1))
done
define_tiny plain
virsh --quiet autostart plain

vf_count() { find "/sys/bus/pci/devices/$pf/" -maxdepth 1 -name 'virtfn*' | wc -l; }
all_off() { for vm in a b c plain; do guest_off "$vm" || return; done; }
# power_cut: kills guests and daemon without cleanup, and removes everything that does not survive a boot.
power_cut() {
    local pid
    pid=$(cat /run/libvirtd.pid)
    kill -STOP "$pid"
    pkill -KILL -f 'qemu-system.* guest='
    kill -KILL "$pid"
    wait_until 120 process_gone "$pid"
    rm -rf /run/libvirt/qemu /run/libvirtd.pid /run/vfpass
    echo 0 >"/sys/bus/pci/devices/$pf/sriov_numvfs"
}
boot_libvirt() { libvirtd -d && wait_until "${LIBVIRT_DEADLINE:-60}" virsh list; }
three_leases_run() { test "$(leases | grep -c running)" = 3; }
each_has_its_own() {
    local index=0
    for vm in a b c; do
        expect "$1: $vm runs" wait_until 120 is_active "$vm"
        expect "$1: $vm holds a VF" wait_until 120 holds_vf "$vm"
        expect_contains "$1: VF $index has $vm's VLAN" "vlan 1$index" vf_attributes "$netdev" "$index"
        index=$((index + 1))
    done
    expect "$1: three leases run" wait_until 120 three_leases_run
    expect "$1: the domain without a VF runs" wait_until 120 is_active plain
    expect "$1: host apply succeeds" vfpass host apply
    expect_equal "$1: the PF has the VFs of host.yaml" 4 "$(vf_count)"
    expect "$1: no drift" vfpass status
}

section "libvirtd starts first: the hook creates the VFs before our unit runs"
power_cut
expect_equal "no VFs are left" 0 "$(vf_count)"
expect "libvirtd" boot_libvirt
each_has_its_own "before our unit"

section "our unit runs first"
power_cut
expect "host apply" vfpass host apply
expect "libvirtd" boot_libvirt
each_has_its_own "after our unit"

section "libvirtd and our unit start together, with a slow firmware"
power_cut
card 0 fault ENABLE_HCA function=pf late=3000 count=1
vfpass host apply >/tmp/apply.log 2>&1 &
apply=$!
expect "libvirtd" boot_libvirt
wait "$apply"
expect_equal "host apply succeeds: $(cat /tmp/apply.log)" 0 $?
card 0 clear
each_has_its_own "with our unit"

section "host.yaml requests more VFs than the hook created"
power_cut
policy 6
expect "libvirtd" boot_libvirt
for vm in a b c; do expect "$vm runs" wait_until 120 is_active "$vm"; done
expect_equal "the hook creates as many VFs as before" 4 "$(vf_count)"
expect_exit 5 "host apply does not remove VFs that guests use" vfpass host apply
expect_said "the error names the domain" "domain"
for vm in a b c; do expect "$vm holds its VF" holds_vf "$vm"; done
for vm in a b c plain; do virsh --quiet destroy "$vm"; done
expect "all guests stop" wait_until 120 all_off
# A lease, and the VF's number with it, persists when the VM stops.
expect_exit 5 "host apply does not remove leased VFs" vfpass host apply
expect_said "the remedy is vfpass detach" "vfpass detach"
for vm in a b c; do expect "detach $vm" vfpass detach "$vm"; done
expect "host apply creates six VFs after the detach" vfpass host apply
expect_equal "the PF has six VFs" 6 "$(vf_count)"
for vm in a b c; do expect "attach $vm" vfpass attach "$vm"; done
for vm in a b c; do expect "$vm starts" start_paused "$vm"; done
expect "no drift" vfpass status
for vm in a b c; do stop_hard "$vm"; done

section "the card's driver loads after libvirtd starts"
power_cut
echo "$pf" >/sys/bus/pci/drivers/mlx5_core/unbind
expect "libvirtd" boot_libvirt
expect "the domain without a VF runs" wait_until 120 is_active plain
expect "a's start has failed" wait_until 120 grep -q "autostart VM 'a'" /var/log/libvirt/libvirtd.log
for vm in a b c; do refuse "$vm does not run without its VF" is_active "$vm"; done
echo "$pf" >/sys/bus/pci/drivers/mlx5_core/bind
expect "the driver is bound to the card again" wait_until 120 test -d "/sys/bus/pci/devices/$pf/net"
expect "host apply" vfpass host apply
for vm in a b c; do expect "$vm starts" start_paused "$vm"; done
expect_equal "three leases run" 3 "$(leases | grep -c running)"
for vm in a b c; do
    stop_hard "$vm"
    expect "detach $vm" vfpass detach "$vm"
done
expect "no lease" no_lease
finish
