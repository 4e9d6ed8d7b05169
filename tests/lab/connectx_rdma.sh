# RDMA on the model of a ConnectX (lab/connectx), without vfpass: programs of rdma-core and perftest between VFs of one card, of
# two ports and of two cards, values and errors, and memory of a DMA-BUF.
# covers: lab/connectx lab/machines/connectx-rdma tests/lab/rdma_cases.py tests/lab/rdma_common.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh
# shellcheck source=SCRIPTDIR/rdma_common.sh
source /vfpass/tests/lab/rdma_common.sh

# The port of the programs' own TCP connection.
tcp_port=20000

# exchange SERVER CLIENT OPTION_OF_GID PROGRAM [OPTION...]: the program between two RDMA devices.
exchange() {
    local server=$1 client=$2 gid=$3 code
    shift 3
    timeout 100 "$@" -d "$server" "$gid" "$(gid_of "$server")" -p "$tcp_port" >/tmp/server 2>&1 &
    wait_until 30 listens "$tcp_port" && timeout 100 "$@" -d "$client" "$gid" "$(gid_of "$client")" -p "$tcp_port" localhost
    code=$?
    wait $! || code=1
    [ "$code" = 0 ] || cat /tmp/server
    return "$code"
}

section "VFs"
ip link set lo up
require "mlx5_core and mlx5_ib load" load_mlx5 rdma
modprobe ib_uverbs
ports=()
for index in 0 1 2; do ports+=("$(pf_address $index)"); done
for port in "${ports[@]}"; do ip link set "$(netdev_of "$port")" up; done
expect "two VFs of the first port" make_vfs_with_macs "${ports[0]}" 0 2
expect "one of the second port" make_vfs_with_macs "${ports[1]}" 1 1
expect "one of the other card" make_vfs_with_macs "${ports[2]}" 2 1
vfs=("$(vf_of "${ports[0]}" 0)" "$(vf_of "${ports[0]}" 1)" "$(vf_of "${ports[1]}" 0)" "$(vf_of "${ports[2]}" 0)")
names=("the same port" "the same port" "the other port" "the other card")
devices=() netdevs=()
for index in "${!vfs[@]}"; do
    require "VF $index has a netdev" wait_until 60 has_netdev "${vfs[index]}"
    require "VF $index has an RDMA device" wait_until 60 test -d "/sys/bus/pci/devices/${vfs[index]}/infiniband"
    netdevs+=("$(netdev_of "${vfs[index]}")")
    devices+=("$(rdma_of "${vfs[index]}")")
    ip link set "${netdevs[index]}" up
    expect "VF $index has a link" wait_until 30 carrier_is 1 "${netdevs[index]}"
    expect "VF $index has a node GUID" grep -qv 0000:0000:0000:0000 "/sys/class/infiniband/${devices[index]}/node_guid"
    expect "VF $index has a GID" wait_until 30 gid_of "${devices[index]}"
done
took "the section"

section "values and errors, between two cards"
modprobe vgem
# case_is NAME OUTCOME
case_is() { expect_equal "$1" "$2" "$(sed -n "s/^$1: //p" /tmp/cases)"; }
timeout 300 python3 /vfpass/tests/lab/rdma_cases.py "${devices[0]}" "${devices[3]}" "${ports[0]}" "${ports[2]}" >/tmp/cases 2>&1
sed 's/^/   /' /tmp/cases
case_is "dma-buf" "success, into a DMA-BUF, success, same, beyond its end remote access"
case_is "atomics" "success, 0xffffffffff, 0x10000000001, success, 0x10000000001, 0x10000000001, success, 0x10000000001, 0x9"
case_is "shared receive queue" "success, success, success, success, limit, success, success, receiver not ready"
case_is "wrong remote key" "remote access, access event"
case_is "beyond the region" "remote access"
case_is "read beyond the region" "remote access"
case_is "atomic beyond the region" "remote access"
case_is "wrong local key" "local protection"
case_is "key of another domain" "local protection"
case_is "deregistered" "remote access"
case_is "without the right" "remote invalid request"
case_is "short buffer" "remote invalid request, local length"
case_is "no buffer" "receiver not ready"
case_is "time that a receiver asks for" "receiver not ready, receiver not ready, later, follower success, success"
case_is "after an error" "remote access, flushed"
case_is "some packets lost" "success, same, success, same, success, success, same, lost, packet_seq_err+local_ack_timeout_err, out_of_sequence+duplicate_request"
case_is "all packets lost" "retries exceeded, 0, retries exceeded, 7"
case_is "an answer lost" "success, 10, 15, local_ack_timeout_err, duplicate_request, success, success, once"
case_is "unplugged" "success, retries exceeded"
# Newer kernels keep keys in pools of ib_core, which begin empty (ib_frmr_pools_init), and the driver has no cache.
if ! grep -qw ib_frmr_pools_init /proc/kallsyms; then
    expect "PF 2, which has UMR, has filled its caches with keys" [ "$(card 2 count CREATE_MKEY)" -gt 6000 ]
fi
timeout 100 python3 /vfpass/tests/lab/rdma_cases.py "${devices[0]}" "$(rdma_of "${ports[2]}")" "${ports[0]}" "${ports[2]}" dma-buf >/tmp/cases 2>&1
sed 's/^/   PF 2: /' /tmp/cases
case_is "dma-buf" "success, into a DMA-BUF, success, same, beyond its end remote access"
expect "the link is back" wait_until 30 carrier_is 1 "${netdevs[0]}"
took "the section"

section "programs for atomics and shared receive queues"
expect "ib_atomic_bw: fetch and add" exchange "${devices[0]}" "${devices[1]}" -x ib_atomic_bw -n 100 -F
expect "ib_atomic_lat: compare and swap" exchange "${devices[0]}" "${devices[3]}" -x ib_atomic_lat -A CMP_AND_SWAP -n 100 -F
expect "ib_send_bw with a shared receive queue" exchange "${devices[0]}" "${devices[1]}" -x ib_send_bw --use-srq -n 100 -s 8192 -q 2 -F
expect "ibv_srq_pingpong" exchange "${devices[0]}" "${devices[3]}" -g ibv_srq_pingpong -n 50 -q 4
took "the section"

for other in 1 2 3; do
    section "with a VF of ${names[other]}"
    server=${devices[0]} client=${devices[other]}
    expect "ib_write_bw" exchange "$server" "$client" -x ib_write_bw -n 100 -s 65536 -F
    expect "ib_read_lat" exchange "$server" "$client" -x ib_read_lat -n 100 -F
    expect "ib_write_lat" exchange "$server" "$client" -x ib_write_lat -n 100 -F
    expect "ib_send_bw" exchange "$server" "$client" -x ib_send_bw -n 100 -s 65536 -F
    expect "ibv_rc_pingpong" exchange "$server" "$client" -g ibv_rc_pingpong -n 50 -c
    expect "ibv_ud_pingpong" exchange "$server" "$client" -g ibv_ud_pingpong -n 50
    took "the section"
done

# Each address in a namespace of its own: both ends in one would take the loopback device, and the other netdevs there would answer for
# the server's address.
modprobe rdma_ucm
# move_to_namespace INDEX: with the address 192.0.2.1INDEX, for which the RDMA device gets a GID.
move_to_namespace() {
    ip netns add "vf$1" && ip link set dev "${netdevs[$1]}" netns "vf$1" &&
        ip -n "vf$1" addr add "192.0.2.1$1/24" dev "${netdevs[$1]}" && ip -n "vf$1" link set "${netdevs[$1]}" up &&
        wait_until 30 has_address_gid "${devices[$1]}" "c000:020$(printf %x $((10 + $1)))"
}
# The port of rping: rdma_cm has no sockets that /proc lists.
listens_by_cm() { [[ $(ip netns exec vf0 rdma resource show cm_id) == *:7174* ]]; }
rping_with() {
    local code
    timeout 100 ip netns exec vf0 rping -s -a 192.0.2.10 -C 20 -S 4000 -V >/tmp/server 2>&1 &
    wait_until 30 listens_by_cm && timeout 100 ip netns exec "vf$1" rping -c -a 192.0.2.10 -C 20 -S 4000 -V
    code=$?
    wait $! || code=1
    [ "$code" = 0 ] || cat /tmp/server
    return "$code"
}
section "rdma_cm"
expect "VF 0 has an address" move_to_namespace 0
for other in 1 2 3; do
    expect "a VF of ${names[other]} has one" move_to_namespace "$other"
    expect "rping" rping_with "$other"
done
for index in 0 1 2 3; do ip netns delete "vf$index"; done
took "the section"

section "everything goes"
for port in "${ports[@]}"; do expect "the VFs of $port are removed" make_vfs "$port" 0; done
expect_equal "the kernel has no complaint" "" "$(complaints)"
expect_equal "the cards knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf[012].log)"
finish
