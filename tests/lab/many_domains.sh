# Fifty domains (25 from QEMU 10 on) are started at the same time, eight of them with VFs of two PFs, while `vfpass` attaches
# and detaches two more: all of them start, each with its own VF, nothing hangs, and everything is restored.
# covers: src/hook src/state
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

# The lab's one emulated core has started 50 domains of QEMU 10 and libvirt 11 in 485 s: hooks reach their deadline of 60 s, and libvirt
# closes the connection of a virsh that does not answer its keepalive messages.
count=50 with_vf=8
[ "$(qemu-system-x86_64 --version | sed -n '1s/.* version \([0-9]*\).*/\1/p')" -lt 10 ] || count=25

section "$count domains, $with_vf with VFs"
install_vfpass
load_mlx5
make_vfs "$(pf_address 0)" 6
make_vfs "$(pf_address 1)" 6
start_libvirt
vfpass hook install
domains=() managed=()
for ((number = 0; number < count; number++)); do
    domains+=("d$number")
    tiny_xml "d$number" --memory 16 >/tmp/d.xml
    virsh --quiet define /tmp/d.xml
done
# pf_of N: four domains use each PF.
pf_of() { pf_address $(($1 % 2)); }
for ((number = 0; number < with_vf; number++)); do
    managed+=("d$number")
    mapping "d$number" rail0 "$(pf_of "$number")" "index: $((number / 2))" "vlan: {id: $((100 + number))}"
    expect "attach d$number" vfpass attach "d$number"
done
for vm in e f; do
    define_tiny "$vm"
    mapping "$vm" rail0 "$(pf_address 0)" 'vlan: {id: 200}'
done
expect "attach f" vfpass attach f
expect_equal "nine leases are reserved" $((with_vf + 1)) "$(leases | grep -c reserved)"

# all_are STATE: whether all these domains have this state, with one virsh call.
all_are() {
    test "$(virsh list --all | awk -v state="$1" '$2 ~ /^d[0-9]+$/ && index($0, state)' | wc -l)" = "$count"
}
each_has_its_own() {
    local number
    for ((number = 0; number < with_vf; number++)); do
        expect "$1: d$number holds a VF" holds_vf "d$number"
        expect_contains "$1: its VF has its VLAN" "vlan $((100 + number))," \
            vf_attributes "$(pf_netdev $((number % 2)))" $((number / 2))
    done
    expect_equal "$1: no two domains have the same VF" "$with_vf" \
        "$(leases | jq -r 'select(.[3] == "running") | .[2]' | sort -u | wc -l)"
}

section "starting all domains together, during an attach and a detach"
for vm in "${domains[@]}"; do
    virsh --quiet start --paused "$vm" >"/tmp/start-$vm.log" 2>&1 &
done
expect "attach e" vfpass attach e
expect "detach f" vfpass detach f
# shellcheck disable=SC2119
wait
failed=$(cat /tmp/start-*.log)
expect_equal "no start fails" "" "$failed"
expect "all are active" wait_until 60 all_are paused
took "the start of all"
each_has_its_own "after the start"
expect "e has a lease after the attach" has_lease e
refuse "f has no lease after the detach" has_lease f
expect "no drift" vfpass status e
for vm in "${managed[@]}"; do expect "no drift of $vm" vfpass status "$vm"; done

section "restarting the daemon while all domains run"
expect "libvirtd" restart_libvirt
expect "all are active" wait_until 60 all_are paused
each_has_its_own "after the restart"

section "stopping all domains together"
for vm in "${domains[@]}"; do
    virsh --quiet destroy "$vm" >"/tmp/stop-$vm.log" 2>&1 &
done
# shellcheck disable=SC2119
wait
expect "all are off" wait_until 60 all_are 'shut off'
expect_equal "no stop fails" "" "$(cat /tmp/stop-*.log)"
expect_equal "no hook fails" "" "$(grep -a 'Hook script' /var/log/libvirt/libvirtd.log)"
expect_equal "no lease is running" 0 "$(leases | grep -c running)"
for ((number = 0; number < with_vf; number++)); do
    refuse "d$number's VLAN is scrubbed" grep -q "vlan $((100 + number))," \
        <(vf_attributes "$(pf_netdev $((number % 2)))" $((number / 2)))
done
for vm in "${managed[@]}" e; do
    vfpass detach "$vm" >"/tmp/detach-$vm.log" 2>&1 &
done
# shellcheck disable=SC2119
wait
expect "no lease is left after nine concurrent detaches" no_lease
expect_equal "every VF's driver is restored" 12 \
    "$(find /sys/bus/pci/drivers/mlx5_core/ -name '0000:*' -exec test -e {}/physfn \; -print | wc -l)"
finish
