# Two PFs with 64 VFs each, 100 domains, of which 64 have a VF each or one has 64: no VF or lease is mixed up, status
# attributes drift to the right lease, a restarted daemon finds its guests, and everything is restored.
# covers: src/state src/commands/status_command.cpp bench/scale.sh bench/lib.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

section "128 VFs, 100 domains"
install_vfpass
load_mlx5
modprobe vfio-pci
pfs=("$(pf_address 0)" "$(pf_address 1)")
for each in "${pfs[@]}"; do
    echo 0 >"/sys/bus/pci/devices/$each/sriov_drivers_autoprobe"
    make_vfs "$each" 64
done
start_libvirt
vfpass hook install
for ((number = 0; number < 100; number++)); do
    tiny_xml "d$number" --memory 16 >"/tmp/d$number.xml"
    echo "define /tmp/d$number.xml"
done >/tmp/define.commands
expect "100 domains are defined" virsh --quiet </tmp/define.commands
expect_equal "libvirt lists them" 100 "$(virsh --quiet list --all | wc -l)"
snapshot_host /tmp/host.before "${pfs[@]}"

section "one domain with 64 VFs"
{
    printf 'version: 1\nvm: d99\nvfs:\n'
    for ((number = 0; number < 64; number++)); do
        printf '  - {name: rail%s, pf: {pci: "%s"}, vlan: {id: %s}}\n' "$number" \
            "${pfs[number % 2]}" $((1000 + number))
    done
} >"$vms/d99.yaml"
settle d99
virsh dumpxml --inactive d99 >/tmp/d99.before
expect "attach" vfpass attach d99
expect_equal "there are 64 leases" 64 "$(leases | wc -l)"
expect_equal "the leases have 64 different VFs" 64 "$(leases | jq -r '.[2]' | sort -u | wc -l)"
expect_equal "64 VFs are on vfio-pci" 64 "$(find /sys/bus/pci/drivers/vfio-pci/ -name '0000:*' | wc -l)"
expect_equal "the VFs have 64 different VLANs" 64 "$(for each in 0 1; do ip -d link show dev "$(pf_netdev $each)"; done |
    grep -o 'vlan 10[0-9][0-9]' | sort -u | wc -l)"
expect "no drift" vfpass status d99
expect "detach" vfpass detach d99
virsh dumpxml --inactive d99 >/tmp/d99.after
expect_same_file "the XML is restored" /tmp/d99.before /tmp/d99.after
rm "$vms/d99.yaml"

section "64 domains with a VF each"
for ((number = 0; number < 64; number++)); do
    mapping "d$number" rail0 "${pfs[number % 2]}" "index: $((number / 2))" "vlan: {id: $((1000 + number))}"
done
failed=''
for ((number = 0; number < 64; number++)); do
    vfpass --quiet attach "d$number" >/tmp/attach.log 2>&1 || failed+="d$number: $(cat /tmp/attach.log) "
done
expect_equal "all are attached" "" "$failed"
expect "status reports no drift" vfpass status
expect_equal "there are 64 leases" 64 "$(leases | wc -l)"
expect_equal "the leases have 64 different VFs" 64 "$(leases | jq -r '.[2]' | sort -u | wc -l)"
expect_equal "the leases have 64 different MACs" 64 "$(vfpass status --json | jq -r '.leases[].settings.mac' | sort -u | wc -l)"
expect "check reports no change" vfpass check
ip link set dev "$(pf_netdev 1)" vf 31 vlan 7
expect "a VF that was changed while its domain is off is no drift" vfpass status d63
mapping d80 rail0 "${pfs[1]}"
expect "the 65th domain gets a VF" vfpass attach d80
expect_equal "its VF is different from all others" 65 "$(leases | jq -r '.[2]' | sort -u | wc -l)"
expect "detach the 65th domain" vfpass detach d80
rm "$vms/d80.yaml"

section "restarting the daemon while sixteen domains run"
for ((number = 48; number < 64; number++)); do
    expect "d$number starts" start_paused "d$number"
done
sixteen_hold() {
    local number
    for ((number = 48; number < 64; number++)); do
        holds_vf "d$number" || { echo "d$number"; return 1; }
    done
}
expect "each QEMU holds a VF" sixteen_hold
expect "the daemon is restarted" restart_libvirt
expect_equal "libvirt has sixteen guests" 16 "$(virsh --quiet list | wc -l)"
expect_equal "sixteen leases are running" 16 "$(leases | grep -c running)"
expect "no drift" vfpass status
expect "each QEMU holds a VF" sixteen_hold
for number in 48 63; do
    expect_contains "d$number's VF has its VLAN" "vlan $((1000 + number))," \
        vf_attributes "$(pf_netdev $((number % 2)))" $((number / 2))
done
ip link set dev "$(pf_netdev 1)" vf 31 vlan 7
expect_exit 3 "a VLAN that was changed while the guest runs is drift" vfpass status
expect_equal "only that domain has drift" '["d63"]' "$(vfpass status --json |
    jq -c '[.leases[] | select(.drift | length > 0) | .domain.name]')"
expect "attach sets the VLAN again" vfpass attach d63
expect "no drift" vfpass status
for ((number = 48; number < 64; number++)); do virsh --quiet destroy "d$number"; done
expect_equal "no lease is running" 0 "$(leases | grep -c running)"

section "gc restores the VFs of 64 deleted domains"
rm "$vms"/*.yaml
for ((number = 0; number < 64; number++)); do echo "undefine d$number"; done >/tmp/undefine.commands
expect "the domains are deleted" virsh --quiet </tmp/undefine.commands
expect "gc" vfpass gc
expect "no lease" no_lease
snapshot_host /tmp/host.after "${pfs[@]}"
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after
finish
