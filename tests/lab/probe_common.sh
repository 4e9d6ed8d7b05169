# shellcheck shell=bash
# Sourced by what runs vfpass-probe in the lab: the program, and an RDMA link in software.

# shellcheck source=SCRIPTDIR/../../lab/lib.sh
source "/vfpass/lab/lib.sh"

probe=/vfpass/build/libexec/vfpass-probe

# make_rxe: rxe0 over a netdev that drops every frame; rxe loops what it sends itself. An MTU of 9000
# makes an RDMA MTU of 4096, and without crc32 `rdma link add` only says that there is no such file.
make_rxe() {
    modprobe crc32_generic && modprobe rdma_rxe && modprobe dummy || return
    ip link add probe0 type dummy
    ip link set probe0 mtu 9000 up
    ip address add 10.99.0.1/24 dev probe0
    rdma link add rxe0 type rxe netdev probe0
    modprobe ib_uverbs
    # Without udev nobody makes the device nodes.
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
