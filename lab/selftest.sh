#!/bin/bash
# Tests the lab itself: lab/run lab/selftest.sh
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib.sh
source "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2317  # expect calls it
own_groups() {
    local index group count
    for index in 0 1 2 3; do
        group=$(iommu_group_of "$(vf_address 0 "$index")")
        count=$(find "/sys/kernel/iommu_groups/$group/devices" -mindepth 1 | wc -l)
        echo "$(vf_address 0 "$index") group $group devices $count"
        [ "$count" = 1 ] || return 1
    done
}

section "the host under test"
expect_equal "two PFs" 2 "$(physical_functions | wc -l)"
expect_equal "the first PF supports 8 VFs" 8 "$(cat "$pci_devices/$(pf_address 0)/sriov_totalvfs")"
expect "mlx5_core loads" load_mlx5
expect_equal "mlx5_core is bound to the PF" mlx5_core "$(driver_of "$(pf_address 0)")"
expect "4 VFs are created" create_vfs 0 4
expect "each VF has its own IOMMU group" own_groups
printf '%s\n' "$last_output"
took "this"

section "libvirt"
expect "libvirtd answers" start_libvirt
took "libvirtd"

section "a VF for a guest"
mac=52:54:00:aa:bb:02
vf=$(vf_address 0 2)
expect "MAC and VLAN are set on the PF" \
    ip link set "$(pf_netdev 0)" vf 2 mac "$mac" vlan 100
expect_contains "the MAC reads back" "$mac" ip link show "$(pf_netdev 0)"
expect "the VF is bound to vfio-pci" bind_to "$vf" vfio-pci
hostdev_xml "$vf" >/run/lab/hostdev.xml
expect "a guest is defined" define_guest train0 --device /run/lab/hostdev.xml
expect_equal "the guest has one root port and no spare ones" 1 \
    "$(virsh dumpxml train0 | grep -c "model='pcie-root-port'")"
expect "the guest starts" virsh start train0
took "the start"

section "inside the guest"
expect "the agent answers" wait_for_agent train0 400
took "the agent"
expect_contains "mlx5_core is bound to the VF in the guest" /drivers/mlx5_core \
    guest_exec train0 readlink -f /sys/bus/pci/devices/0000:01:00.0/driver
expect_contains "the VF has the MAC that was set on the PF" "$mac" \
    guest_shell train0 'cat /sys/bus/pci/devices/0000:01:00.0/net/*/address'
expect_exit 3 "guest_shell returns the exit code" guest_shell train0 'exit 3'
expect "the guest shuts down through its agent" shut_down_guest train0
took "the whole section"

finish
