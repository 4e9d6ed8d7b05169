# Where the kernel's mlx5 does not do what its interfaces suggest: attributes of VFs that do not exist yet, InfiniBand without its
# drivers, a firmware that has failed, switchdev mode, a card that another processor manages. No guest runs.
# covers: src/host/sriov src/plan/plan_vf_creation.* src/plan/choose_vf.* src/plan/choose_vectors.* src/model/port_fault.cpp src/doctor/sriov_checks.cpp
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh

install_vfpass
require "mlx5_core loads" modprobe mlx5_core
pf=$(pf_address 0) infiniband=$(pf_address 1) managed=$(pf_address 2)
expect "the Ethernet PF has a netdev" wait_until 60 test -d "$pci_devices/$pf/net"
netdev=$(pf_netdev 0)
start_libvirt
vfpass hook install
define_guest a
settle a

vfs_of() { cat "$pci_devices/$1/sriov_numvfs"; }
finding() { vfpass doctor --json | jq -r ".findings[] | select(.key == \"$1\" and (.subject | test(\"$2\"))) | .result"; }
auto='infiniband: {node-guid: auto, port-guid: auto}'

section "attributes that were set before the VF existed are not those of a new VF"
for index in 0 2; do
    ip link set dev "$netdev" vf "$index" mac 02:00:00:00:00:99
    ip link set dev "$netdev" vf "$index" vlan 77
    ip link set dev "$netdev" vf "$index" spoofchk off
    ip link set dev "$netdev" vf "$index" trust on
done
mapping a rail0 "$pf" 'index: 2'
expect "attach" vfpass attach a
expect_equal "the VFs up to the mapping's index exist, and no more" 3 "$(vfs_of "$pf")"
expect_equal "the leased VF has no VLAN" 0 "$(vf_attribute 0 2 'vlan_list[0].vlan // 0')"
expect_equal "it is not trusted" false "$(vf_attribute 0 2 trust)"
expect_equal "its spoof check is on" true "$(vf_attribute 0 2 spoofchk)"
expect_equal "VF 0, which nobody leases, has no VLAN" 0 "$(vf_attribute 0 0 'vlan_list[0].vlan // 0')"
expect_equal "VF 0 is not trusted" false "$(vf_attribute 0 0 trust)"
refuse "VF 0 does not have the earlier MAC" grep -q 02:00:00:00:00:99 <(vf_attributes "$netdev" 0)
expect "status reports no drift" vfpass status a
took "the section"

section "a VM stops: its VF becomes neutral, and the kernel does not complain"
dmesg --clear
expect "start" virsh start --paused a
virsh destroy a >/dev/null
expect "the lease is reserved" wait_until 30 has_lease reserved
expect_equal "the VF has no MAC" 00:00:00:00:00:00 "$(vf_attribute 0 2 address)"
refuse "mlx5 did not warn about an invalid MAC under spoof check" grep -q spoofchk <(dmesg)
expect "detach" vfpass detach a
expect_equal "the VFs are removed" 0 "$(vfs_of "$pf")"
took "the section"

section "the firmware does not enable a VF, and mlx5 creates it all the same"
card 0 fault ENABLE_HCA function=pf status=5 count=1 >/dev/null
expect_exit 1 "attach is refused" vfpass attach a
expect_said "it says what the firmware did not do" "requested 3 VFs, but the card's firmware did not enable one of them"
expect_said "it quotes the kernel log" "failed to enable VF 0"
expect_equal "no VF is left" 0 "$(vfs_of "$pf")"
expect "nothing is leased" no_lease
expect "attach when the firmware works" vfpass attach a
echo 0 >"$pci_devices/$pf/sriov_numvfs"
card 0 fault ENABLE_HCA function=pf status=5 count=1 >/dev/null
expect_exit 1 "the guest does not start with such a VF" virsh start --paused a
expect_equal "the hook has removed it" 0 "$(vfs_of "$pf")"
expect "detach" vfpass detach a
took "the section"

section "a driver's probe of the VF takes long"
make_vfs "$pf" 3
vf=$(vf_of "$pf" 2)
card 0 fault INIT_HCA function=vf2 late=20000 count=1 >/dev/null
bind_to "$vf" mlx5_core &
binding=$!
expect "the probe waits for the firmware" wait_until 30 grep -q ' vf2 INIT_HCA .*late' /lab/control/pf0.log
cat "$pci_devices/$vf/driver_override" >/tmp/override &
expect_exit 5 "attach is refused" vfpass attach a
# Linux 6.12.118 reads it during the probe, so that only the netdev is missing.
reason="VF 2 ($vf) is locked in the kernel: a driver is being bound"
[ ! -s /tmp/override ] || reason="$vf is in use: bound to mlx5_core but has no netdev"
expect_said "it names the VF and what the kernel does with it" "$reason"
wait "$binding"
expect "attach after the probe" vfpass attach a
expect "detach" vfpass detach a
expect_equal "the VF has its driver_override again" mlx5_core "$(<"$pci_devices/$vf/driver_override")"
make_vfs "$pf" 0
took "the section"

section "interrupt vectors"
make_vfs "$pf" 2
vf=$(vf_of "$pf" 1)
vectors() { vfpass vf list --json | jq ".vfs[] | select(.address == \"$vf\") | .settings.msix_vectors"; }
expect "the VF is bound to mlx5_core" bind_to "$vf" mlx5_core
expect_equal "mlx5 gives a VF 12 vectors" 12 "$(vectors)"
total=$(cat "$pci_devices/$pf/sriov_vf_total_msix")
mapping a rail0 "$pf" 'index: 1' "msix-vectors: $((total + 1))"
expect_exit 2 "check refuses more than the PF has" vfpass check a
expect_said "it names the total" "has $total interrupt vectors for all its VFs together"
mapping a rail0 "$pf" 'index: 1' 'msix-vectors: 25'
expect_exit 1 "the firmware has a maximum for one VF" vfpass attach a
expect_said "the remedy is a smaller number" "set \`msix-vectors\` to a smaller number"
expect_equal "the VF has what it had" 12 "$(vectors)"
expect_equal "and its driver" mlx5_core "$(driver_of "$vf")"
expect "nothing is leased" no_lease
mapping a rail0 "$pf" 'index: 1' 'msix-vectors: 5'
expect "attach" vfpass attach a
expect_equal "the VF has 5 vectors" 5 "$(vectors)"
expect_equal "it is bound to vfio-pci" vfio-pci "$(driver_of "$vf")"
expect "a second attach changes nothing" vfpass plan a
expect "start" virsh start --paused a
expect "status reports no drift" vfpass status a
virsh destroy a >/dev/null
expect "the lease is reserved" wait_until 30 has_lease reserved
expect_equal "the VF keeps them between two runs" 5 "$(vectors)"
mapping a rail0 "$pf" 'index: 1' 'msix-vectors: auto'
expect "attach with a number for the guest's vCPUs" vfpass attach a
expect_equal "one per vCPU and one for events" "$(($(virsh vcpucount a --config --current) + 1))" "$(vectors)"
expect "detach" vfpass detach a
expect_equal "the VF has the number from before" 12 "$(vectors)"
expect_equal "and its driver" mlx5_core "$(driver_of "$vf")"
make_vfs "$pf" 0
took "the section"

section "switchdev mode"
make_vfs "$pf" 2
expect "the PF changes to switchdev mode" devlink dev eswitch set "pci/$pf" mode switchdev
expect "each VF has a representor" wait_until 30 representors_are "pf0vf0 pf0vf1"
representor=$(grep -ls '^pf0vf1$' /sys/class/net/*/phys_port_name | cut -d/ -f5)
mapping a rail0 "$pf" 'index: 1' 'vlan: {id: 9}'
expect_exit 5 "check refuses a VLAN" vfpass check a
expect_said "it names what switchdev mode lacks" "requires vlan, but the driver of PF $pf cannot set that in switchdev mode"
expect_said "it names legacy mode" "devlink dev eswitch set pci/$pf mode legacy"
expect_said "it prints the rule for the VF's representor" "bridge vlan add dev $representor vid 9 pvid untagged"
expect_exit 5 "attach refuses it, too" vfpass attach a
expect "nothing is leased" no_lease
mapping a rail0 "$pf" 'index: 1' 'vlan: {id: 0}'
expect "attach with defaults" vfpass attach a
expect_said "attach says what it leaves out" "in switchdev mode; this is left out"
expect "status reports no drift" vfpass status a
expect_contains "status names the attribute" "not supported by the driver" vfpass status a
expect_contains "status names the representor" "$representor" vfpass status a
expect_contains "vf list names the representor" "$representor" vfpass vf list
expect "a second attach changes nothing" vfpass attach a
expect "plan has no changes" vfpass plan a
expect "detach" vfpass detach a
expect "the PF changes to legacy mode" devlink dev eswitch set "pci/$pf" mode legacy
expect "the VFs are removed" make_vfs "$pf" 0
took "the section"

section "a firmware that has failed"
card 0 die >/dev/null
expect "the driver removes the netdev" wait_until 60 test ! -d "$pci_devices/$pf/net"
mapping a rail0 "$pf"
expect_exit 1 "check refuses the PF" vfpass check a
expect_said "it names the state" "has neither netdev nor RDMA device: the driver or the firmware has failed"
expect_said "it names the firmware's health" "devlink health show pci/$pf"
expect_exit 1 "attach refuses it, too" vfpass attach a
expect "nothing is leased" no_lease
expect_equal "doctor fails" failed "$(finding pf-netdev "$pf")"
printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    embedded-switch-mode: switchdev\n' "$pf" >/etc/vfpass/host.yaml
expect_exit 1 "host apply refuses it, too" vfpass host apply
expect_said "it names the cause" "cannot set \`embedded-switch-mode\`: it is bound to mlx5_core, but has neither netdev nor RDMA device"
rm /etc/vfpass/host.yaml
card 0 recover >/dev/null
expect "the driver recovers" wait_until 60 devlink health recover "pci/$pf" reporter fw_fatal
expect "the netdev is back" wait_until 60 test -d "$pci_devices/$pf/net"
expect "attach" vfpass attach a
expect_equal "one VF exists" 1 "$(vfs_of "$pf")"
expect "detach" vfpass detach a
took "the section"

section "InfiniBand without its drivers"
mapping a rail0 "$infiniband" "$auto"
expect_exit 1 "check refuses the PF without RDMA device" vfpass check a
expect_said "it names both drivers" "run \`modprobe mlx5_ib\` and \`modprobe ib_ipoib\`"
expect "mlx5_ib loads" modprobe mlx5_ib
expect "the PF has an RDMA device" wait_until 30 test -d "$pci_devices/$infiniband/infiniband"
expect_exit 1 "check refuses the PF without IPoIB netdev" vfpass check a
expect_said "it names ib_ipoib" "run \`modprobe ib_ipoib\`"
expect_exit 1 "attach refuses it, too" vfpass attach a
expect_equal "no VF was created" 0 "$(vfs_of "$infiniband")"
expect_equal "doctor fails" failed "$(finding pf-netdev "$(ls "$pci_devices/$infiniband/infiniband")")"
expect "ib_ipoib loads" modprobe ib_ipoib
expect "the PF has a netdev" wait_until 30 test -d "$pci_devices/$infiniband/net"
expect "attach" vfpass attach a
expect "detach" vfpass detach a
took "the section"

section "a card that another processor manages"
require "the PF has a netdev" wait_until 30 test -d "$pci_devices/$managed/net"
mapping a rail0 "$managed" 'mac: 02:aa:00:00:00:11'
expect_exit 1 "attach with a MAC" vfpass attach a
expect_said "the remedy is the card's own processor" "set the attributes on the BlueField's own processor"
expect_said "nothing was changed" "the previous attributes were restored"
expect "nothing is leased" no_lease
mapping a rail0 "$managed" 'mac: keep'
expect "attach that keeps the MAC" vfpass attach a
expect "status reports no drift" vfpass status a
expect "a second attach changes nothing" vfpass attach a
expect "start" virsh start --paused a
expect "status reports no drift" vfpass status a
virsh destroy a >/dev/null
expect "the lease is reserved" wait_until 30 has_lease reserved
expect "detach" vfpass detach a
took "the section"
finish
