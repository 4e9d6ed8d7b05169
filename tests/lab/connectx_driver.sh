# The kernel's own mlx5 drivers on the model of a ConnectX (lab/connectx), without vfpass: so a newer kernel can be tried by
# itself. The card switches frames between VFs in network namespaces as the driver's flow tables say.
# covers: lab/connectx lab/lib/connectx.sh lab/outside/machine.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh

# groups_of PF: how many IOMMU groups its VFs have.
groups_of() { readlink "/sys/bus/pci/devices/$1"/virtfn*/iommu_group | sort -u | wc -l; }

autoprobe() { echo "$2" >"/sys/bus/pci/devices/$1/sriov_drivers_autoprobe"; }

section "the PFs"
require "mlx5_core loads" modprobe mlx5_core
expect "the Ethernet PF has a netdev" wait_until 30 has_netdev "$(pf_address 0)"
pf=$(pf_address 0) netdev=$(pf_netdev 0)
ib=$(pf_address 1)
expect_equal "mlx5_core is bound" "mlx5_core mlx5_core" "$(driver_of "$pf") $(driver_of "$ib")"
expect "it is the kernel's own" compgen -G "/lib/modules/$(uname -r)/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko*"
expect "it has read the firmware's version" grep -qE "mlx5_core $pf: firmware version: [0-9]+\.[0-9]+\.[0-9]+" <(dmesg)
expect_equal "the uplink's name" p0 "$(cat "/sys/class/net/$netdev/phys_port_name")"
expect "the Ethernet PF is set up" ip link set dev "$netdev" up
expect "its link comes up" wait_until 30 carrier_is 1 "$netdev"
expect_equal "the kernel has no complaint" "" "$(complaints)"
took "the section"

section "VFs"
for count in 4 16; do
    expect "$count VFs are created" make_vfs "$pf" "$count"
    expect_equal "$count VFs have an IOMMU group each" "$count" "$(groups_of "$pf")"
    expect "mlx5_core is bound to the last one, and it has a netdev" wait_until 60 has_netdev "$(vf_of "$pf" $((count - 1)))"
    expect "they are removed" make_vfs "$pf" 0
    took "the section"
done
autoprobe "$pf" 0
expect "127 VFs are created" make_vfs "$pf" 127
expect_equal "127 VFs have an IOMMU group each" 127 "$(groups_of "$pf")"
expect "they are removed" make_vfs "$pf" 0
expect_equal "none is left" "" "$(compgen -G "/sys/bus/pci/devices/$pf/virtfn*")"
expect_equal "the kernel has no complaint" "" "$(complaints)"
took "the section"

section "the MAC that the PF sets is the VF's"
make_vfs "$pf" 3
for index in 0 1 2; do
    expect "VF $index gets a MAC" ip link set dev "$netdev" vf "$index" mac "02:00:00:00:0a:0$index"
    expect "VF $index is bound to mlx5_core" bind_to "$(vf_of "$pf" "$index")" mlx5_core
    expect "VF $index is in a namespace" put_in_namespace "$pf" "$index"
    name_vf "$index"
    expect_equal "its netdev has the MAC" "02:00:00:00:0a:0$index" "${vf_mac[index]}"
done
expect_equal "a frame arrives" "${vf_mac[0]}" "$(delivered)"
took "the section"

section "VLAN"
# set_vlans ID...: of VF 0, 1, ...
set_vlans() {
    local index=0
    for vlan; do ip link set dev "$netdev" vf "$index" vlan "$vlan" || return; index=$((index + 1)); done
}
expect "all VFs are in VLAN 100" set_vlans 100 100 100
expect_equal "a frame arrives" "${vf_mac[0]}" "$(delivered)"
expect "the sender is moved to VLAN 200" set_vlans 200
expect_equal "it does not reach VLAN 100" "" "$(delivered)"
expect "the receiver and its witness follow" set_vlans 200 200 200
expect_equal "a frame arrives" "${vf_mac[0]}" "$(delivered)"
expect "the sender has no VLAN" set_vlans 0
expect_equal "it does not reach VLAN 200" "" "$(delivered)"
expect "none has a VLAN" set_vlans 0 0 0
expect_equal "a frame arrives" "${vf_mac[0]}" "$(delivered)"
took "the section"

section "spoof check"
stranger=02:00:00:00:0b:0b
expect "the check is off" ip link set dev "$netdev" vf 0 spoofchk off
expect_equal "a foreign source MAC arrives" "$stranger" "$(delivered "$stranger")"
expect "the check is on" ip link set dev "$netdev" vf 0 spoofchk on
expect_equal "a foreign source MAC does not arrive" "" "$(delivered "$stranger")"
expect_equal "the VF's own does" "${vf_mac[0]}" "$(delivered)"
took "the section"

section "trust: a group that the receiver has not joined"
group=01:00:5e:00:00:63
hears_group() { test "$(delivered "${vf_mac[0]}" "$group")" = "$1"; }
expect "the receiver asks for all multicast" in_vf 1 "ip link set dev ${vf_netdev[1]} allmulticast on"
expect "it is not trusted" ip link set dev "$netdev" vf 1 trust off
expect "it does not hear the group" hears_group ""
expect "it is trusted" ip link set dev "$netdev" vf 1 trust on
expect "it hears the group" wait_until 20 hears_group "${vf_mac[0]}"
expect "it is not trusted any more" ip link set dev "$netdev" vf 1 trust off
expect "it does not hear the group any more" wait_until 20 hears_group ""
in_vf 1 "ip link set dev ${vf_netdev[1]} allmulticast off"
took "the section"

section "link state"
expect "disable" ip link set dev "$netdev" vf 0 state disable
expect "the VF has no link" wait_until 20 vf_carrier_is 0 0
expect_equal "it reaches nobody" "" "$(delivered)"
expect "enable" ip link set dev "$netdev" vf 0 state enable
expect "the VF has a link" wait_until 20 vf_carrier_is 0 1
expect_equal "a frame arrives" "${vf_mac[0]}" "$(delivered)"
expect "auto" ip link set dev "$netdev" vf 0 state auto
expect "the VF has a link" wait_until 20 vf_carrier_is 0 1
took "the section"

section "counters"
sent=$(vf_counter "$netdev" 0 tx) received=$(vf_counter "$netdev" 1 rx)
expect_equal "three frames arrive" "${vf_mac[0]}" "$(delivered)"
expect "the sender's VF has counted them" test "$(vf_counter "$netdev" 0 tx)" -ge $((sent + 3))
expect "the receiver's VF has counted them and the witness's" test "$(vf_counter "$netdev" 1 rx)" -ge $((received + 4))
took "the section"

section "switchdev"
ip link set dev "$netdev" vf 0 spoofchk on
vf_attributes "$netdev" 0 >/tmp/vf0.legacy
expect "switchdev with VFs" devlink dev eswitch set "pci/$pf" mode switchdev
expect_contains "the mode reads back" "mode switchdev" devlink dev eswitch show "pci/$pf"
expect "each VF has a representor" wait_until 20 representors_are "pf0vf0 pf0vf1 pf0vf2"
refuse "a VLAN is refused" ip link set dev "$netdev" vf 0 vlan 5
expect "the representors are joined" join_representors "$pf" 0 1 2
for index in 0 1 2; do expect "VF $index has a link" wait_until 20 vf_carrier_is "$index" 1; done
expect_equal "a frame arrives through the host" "${vf_mac[0]}" "$(delivered)"
expect "the hub is gone" tc qdisc delete dev "$(representor_of "$pf" 0)" clsact
expect_equal "without it none arrives" "" "$(delivered)"
expect "legacy" devlink dev eswitch set "pci/$pf" mode legacy
expect_contains "the mode reads back" "mode legacy" devlink dev eswitch show "pci/$pf"
expect "no representor is left" wait_until 20 representors_are ""
vf_attributes "$netdev" 0 >/tmp/vf0.after
expect_same_file "VF 0 has its attributes" /tmp/vf0.legacy /tmp/vf0.after
frame_arrives() { test "$(delivered)" = "${vf_mac[0]}"; }
expect "a frame arrives" wait_until 20 frame_arrives
expect_equal "the kernel has no complaint" "" "$(complaints)"
took "the section"

section "InfiniBand"
require "mlx5_ib and ib_ipoib load" load_mlx5 rdma
ib_netdev=$(pf_netdev 1)
expect_equal "the InfiniBand PF has an IPoIB netdev" 32 "$(cat "/sys/class/net/$ib_netdev/type")"
autoprobe "$ib" 0
expect "2 VFs are created" make_vfs "$ib" 2
expect "the node's GUID" ip link set dev "$ib_netdev" vf 1 node_guid 02:00:00:00:00:00:0b:01
expect "the port's GUID" ip link set dev "$ib_netdev" vf 1 port_guid 02:00:00:00:00:00:0b:02
expect_contains "they read back" "NODE_GUID 02:00:00:00:00:00:0b:01, PORT_GUID 02:00:00:00:00:00:0b:02" vf_attributes "$ib_netdev" 1
refuse "a VLAN is refused" ip link set dev "$ib_netdev" vf 1 vlan 5
vf=$(vf_of "$ib" 1)
expect "the VF is bound to mlx5_core" bind_to "$vf" mlx5_core
expect "it has an RDMA device" wait_until 30 test -d "/sys/bus/pci/devices/$vf/infiniband"
device=$(ls "/sys/bus/pci/devices/$vf/infiniband")
expect_equal "with that node GUID" 0200:0000:0000:0b01 "$(cat "/sys/class/infiniband/$device/node_guid")"
expect_equal "with that port GUID" fe80:0000:0000:0000:0200:0000:0000:0b02 "$(cat "/sys/class/infiniband/$device/ports/1/gids/0")"
# port_state PCI_ADDRESS
port_state() { cat "/sys/bus/pci/devices/$1"/infiniband/*/ports/1/state; }
expect_equal "a new VF's link is disabled" "1: DOWN" "$(port_state "$vf")"
expect "its link follows the port" ip link set dev "$ib_netdev" vf 1 state auto
expect_equal "a subnet manager has made the ports active" "4: ACTIVE 4: ACTIVE" "$(port_state "$ib") $(port_state "$vf")"
card 1 subnet-manager down >/dev/null
expect_equal "without one the PF's port is initialized, and the VF's is down" "2: INIT 1: DOWN" \
    "$(port_state "$ib") $(port_state "$vf")"
card 1 subnet-manager up >/dev/null
expect "the VFs are removed" make_vfs "$ib" 0
took "the section"

section "interrupt vectors"
vf=$(vf_of "$pf" 2)
# vectors: the size of the VF's MSI-X table, from the message control register of the model's capability at 9c
vectors() { echo $((($(od -An -tu2 -j158 -N2 "/sys/bus/pci/devices/$vf/config") & 0x7ff) + 1)); }
set_vectors() { bash -c "echo $1 >/sys/bus/pci/devices/$vf/sriov_vf_msix_count"; }
expect "the PF has vectors for its VFs" test "$(cat "/sys/bus/pci/devices/$pf/sriov_vf_total_msix")" -ge 36
expect "the VF is bound to mlx5_core" bind_to "$vf" mlx5_core
expect_equal "it has the default" 12 "$(vectors)"
refuse "the kernel changes none while a driver is bound" set_vectors 5
expect "the VF is unbound" bash -c "echo $vf >/sys/bus/pci/devices/$vf/driver/unbind"
refuse "one vector is too few" set_vectors 1
refuse "the table has a largest size" set_vectors 25
expect "5 vectors" set_vectors 5
expect_equal "the configuration space shows them" 5 "$(vectors)"
expect "the VF is bound to mlx5_core" bind_to "$vf" mlx5_core
expect "its driver works with them" wait_until 30 test -d "/sys/bus/pci/devices/$vf/net"
expect "the VF is unbound" bash -c "echo $vf >/sys/bus/pci/devices/$vf/driver/unbind"
expect "0 is the default" set_vectors 0
expect_equal "the configuration space shows it" 12 "$(vectors)"
took "the section"

section "everything goes"
expect "the VFs are removed" make_vfs "$pf" 0
expect "the drivers are unloaded" modprobe -r mlx5_ib ib_ipoib
expect_equal "the kernel has no complaint" "" "$(complaints)"
expect "the cards have logs" test -s /lab/control/pf0.log -a -s /lab/control/pf1.log
expect_equal "they knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf[01].log)"
finish
