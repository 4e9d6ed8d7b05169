# Sourced by the tests of the RDMA programs of Debian, without vfpass (connectx_rdma.sh, hosts_rdma.sh).
# shellcheck shell=bash

rdma_of() { ls "/sys/bus/pci/devices/$1/infiniband"; }

# gid_of DEVICE: the index of the RoCE v2 GID that follows from the MAC.
gid_of() {
    local port=/sys/class/infiniband/$1/ports/1 index
    for index in {0..31}; do
        [[ $(cat "$port/gid_attrs/types/$index" 2>/dev/null) == "RoCE v2" && $(cat "$port/gids/$index") == fe80:* ]] || continue
        echo "$index"
        return
    done
    return 1
}

# has_address_gid DEVICE END: whether a GID of the device ends so.
has_address_gid() { grep -q "$2\$" "/sys/class/infiniband/$1/ports/1/gids/"*; }

listens() { grep -q ":$(printf %04X "$1") .* 0A " /proc/net/tcp /proc/net/tcp6; }

# make_vfs_with_macs PF NUMBER COUNT: each VF has the MAC 02:01:02:03:NUMBER:INDEX before its driver looks: the node GUID of a VF follows
# from the MAC that the PF has set, and with a node GUID of zero rdma_cm finds no device (node_guid_gen_from_mac in
# mlx5/core/esw/legacy.c; rdma-core's librdmacm crashed until pull request 1547).
make_vfs_with_macs() {
    local index pf=/sys/bus/pci/devices/$1
    echo 0 >"$pf/sriov_drivers_autoprobe"
    make_vfs "$1" "$3" || return
    for ((index = 0; index < $3; index++)); do
        ip link set dev "$(netdev_of "$1")" vf "$index" mac "02:01:02:03:0$2:0$index" &&
            bind_to "$(vf_of "$1" "$index")" mlx5_core || return
    done
}
