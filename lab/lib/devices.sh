# shellcheck shell=bash disable=SC2154
# Sourced by lib.sh: the SR-IOV functions, their drivers, and their state in sysfs.

pci_devices=/sys/bus/pci/devices

# physical_functions: the addresses of all PFs of the machine, in order.
physical_functions() {
    local device
    for device in "$pci_devices"/*; do
        [ ! -e "$device/sriov_totalvfs" ] || basename "$device"
    done
}

# pf_address N: counted from 0.
pf_address() { physical_functions | sed -n "$(($1 + 1))p"; }

# netdev_of ADDRESS: prints nothing if there is none.
netdev_of() {
    local netdev
    for netdev in "$pci_devices/$1"/net/*; do
        [ ! -e "$netdev" ] || basename "$netdev"
    done
}

pf_netdev() { netdev_of "$(pf_address "$1")"; }

# vf_address N INDEX: the address of PF N's VF with that index.
vf_address() { basename "$(readlink "$pci_devices/$(pf_address "$1")/virtfn$2")"; }

driver_of() {
    [ ! -e "$pci_devices/$1/driver" ] || basename "$(readlink "$pci_devices/$1/driver")"
}

iommu_group_of() { basename "$(readlink "$pci_devices/$1/iommu_group")"; }

# card N ORDER...: gives the card of PF N an order, such as "card 0 fault ENABLE_HCA late=3000 count=1" (connectx/README.md).
card() {
    local pf
    pf=$(pf_address "$1")
    shift
    sh "$lab_directory/connectx/control" "$pf" "$@"
}

# vf_attribute N INDEX KEY: an attribute as the PF's driver reports it, by iproute2's name in JSON: "vf_attribute 0 2 address".
vf_attribute() {
    ip -d -j link show dev "$(pf_netdev "$1")" | jq -r ".[0].vfinfo_list[] | select(.vf == $2) | .$3"
}

# load_mlx5 [rdma]: returns when all PFs are bound and have their netdevs. The netdev of an InfiniBand PF is ib_ipoib's, so such a PF needs rdma.
load_mlx5() { modprobe -a mlx5_core ${1:+mlx5_ib ib_ipoib} && every_pf_has_a_netdev; }

every_pf_has_a_netdev() {
    local address
    for address in $(physical_functions); do
        wait_until 60 test -d "$pci_devices/$address/net" || {
            echo "no netdev for $address" >&2
            return 1
        }
    done
}

create_vfs() { echo "$2" >"$pci_devices/$(pf_address "$1")/sriov_numvfs"; }

# bind_to ADDRESS DRIVER: through driver_override, as vfpass does.
bind_to() {
    local device=$pci_devices/$1
    modprobe "$2" || return
    [ ! -e "$device/driver" ] || echo "$1" >"$device/driver/unbind"
    echo "$2" >"$device/driver_override"
    echo "$1" >/sys/bus/pci/drivers_probe
    [ "$(driver_of "$1")" = "$2" ]
}
