# VFs below a switch without ACS share an IOMMU group and are refused, unless the mapping accepts the risk.
# covers: src/plan/check_device.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_mlx5
good=$(pf_address 0) pf=$(pf_address 1) netdev=$(pf_netdev 1)
make_vfs "$good" 2
make_vfs "$pf" 3
start_libvirt
define_guest train0
settle train0
virsh dumpxml --inactive train0 >/tmp/xml.before
snapshot_host /tmp/host.before "$good" "$pf"
untouched() {
    virsh dumpxml --inactive train0 >/tmp/xml.after
    snapshot_host /tmp/host.after "$good" "$pf"
    expect_same_file "$1: the host is unchanged" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is unchanged" /tmp/xml.before /tmp/xml.after
    expect "$1: no lease" no_lease
}
vf=$(vf_of "$pf" 1)
expect_equal "the lab's VFs share a group" "$(iommu_group_of "$vf")" \
    "$(iommu_group_of "$(vf_of "$pf" 0)")"

section "refused"
mapping train0 rail0 "$pf" 'index: 1' 'vlan: {id: 5}'
expect_exit 5 "check" vfpass check train0
expect_exit 5 "attach" vfpass attach train0
expect_said "the error names the group" "VF 1 ($vf) shares IOMMU group $(iommu_group_of "$vf") with "
for peer in "$(vf_of "$pf" 0)" "$(vf_of "$pf" 2)"; do
    expect_said "the error names $peer" "$peer"
done
expect_said "the remedy is printed" "allow: [shared-iommu-group]"
mapping train0 rail0 "$pf"
expect_exit 5 "index: auto is refused too" vfpass attach train0
expect_said "the reason is printed" "shares IOMMU group"
untouched "refused"
expect_contains "vf list shows the shared group" "$(iommu_group_of "$vf") shared" vfpass vf list

section "the risk is accepted"
mapping train0 rail0 "$pf" 'index: 1' 'vlan: {id: 5}'
echo 'allow: [shared-iommu-group]' >>"$vms/train0.yaml"
expect "attach" vfpass attach train0
expect_equal "the VF is on vfio-pci" vfio-pci "$(driver_of "$vf")"
expect_contains "the VF has its VLAN" "vlan 5" vf_attributes "$netdev" 1
expect "detach" vfpass detach train0
untouched "after detach"

section "a VF with its own group needs no permission"
mapping train0 rail0 "$good"
expect "attach" vfpass attach train0
expect "detach" vfpass detach train0
untouched "the good PF"
finish
