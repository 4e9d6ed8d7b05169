# shellcheck shell=bash
# Sourced by the tests that run vfpass-probe in the lab: the program, and a SoftRoCE link.

# shellcheck source=SCRIPTDIR/../../lab/lib.sh
source "/vfpass/lab/lib.sh"

probe=/vfpass/build/libexec/vfpass-probe

# make_rxe: creates rxe0 on a netdev that drops every frame; rxe loops packets to itself. An MTU of 9000 gives an
# RDMA MTU of 4096. Without crc32, `rdma link add` fails with "No such file or directory".
make_rxe() {
    modprobe crc32_generic && modprobe rdma_rxe && modprobe dummy || return
    ip link add probe0 type dummy
    ip link set probe0 mtu 9000 up
    ip address add 10.99.0.1/24 dev probe0
    rdma link add rxe0 type rxe netdev probe0
    modprobe ib_uverbs
    # Without udev the device nodes have to be created here.
    mkdir -p /dev/infiniband
    local device
    for device in /sys/class/infiniband_verbs/uverbs*; do
        [ -e "/dev/infiniband/$(basename "$device")" ] ||
            mknod "/dev/infiniband/$(basename "$device")" c \
                "$(cut -d: -f1 "$device/dev")" "$(cut -d: -f2 "$device/dev")"
    done
    wait_until 20 grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state
    wait_until 20 grep -q ffff:0a63:0001 /sys/class/infiniband/rxe0/ports/1/gids/1
}

loopback() { "$probe" loopback --device rxe0 --deadline 120 "$@"; }
