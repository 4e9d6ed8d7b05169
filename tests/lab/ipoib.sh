# IP over InfiniBand and rdma_cm between two VFs of an InfiniBand port, without guests: the kernel's ib_ipoib, ib_sa and ib_cm ask the
# subnet administrator of the model of a ConnectX (lab/connectx) for multicast groups and paths. Without its answer they fail.
# covers: lab/connectx/subnet_administrator.c lab/connectx/multicast.c lab/connectx/infiniband.c lab/connectx/network.c src/probe/rdma/rdma_cm_*
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh

require "the drivers load, and the InfiniBand PF has its IPoIB netdev" load_mlx5 rdma
modprobe -a ib_uverbs rdma_ucm
ip link set lo up
pf=$(pf_address 1)
probe=/vfpass/build/libexec/vfpass-probe
devices=()

# make_port INDEX: the VF gets its GUIDs before its driver looks, and follows the state of the card's port.
make_port() {
    local key value
    for key in node_guid port_guid; do
        value=02:00:00:00:00:00:$([ "$key" = node_guid ] && echo 10 || echo 20):0$1
        ip link set dev "$(netdev_of "$pf")" vf "$1" "$key" "$value" || return
    done
    ip link set dev "$(netdev_of "$pf")" vf "$1" state auto && bind_to "$(vf_of "$pf" "$1")" mlx5_core &&
        wait_until 60 has_netdev "$(vf_of "$pf" "$1")"
}
rdma_of() { ls "$pci_devices/$(vf_of "$pf" "$1")/infiniband"; }
counter() { cat "/sys/class/infiniband/${devices[$1]}/ports/1/counters/$2"; }

# Each in a namespace of its own: between two addresses of one host there is no network.
move_to_namespace() {
    ip netns add "vf$1" && ip link set dev "${vf_netdev[$1]}" netns "vf$1" &&
        in_vf "$1" "ip addr add 192.0.2.1$1/24 dev ${vf_netdev[$1]} && ip addr add 2001:db8::1$1/64 dev ${vf_netdev[$1]} nodad &&
            ip link set ${vf_netdev[$1]} up && echo 0 0 >/proc/sys/net/ipv4/ping_group_range"
}
netdev_carrier_is() { test "$(in_vf "$1" "cat /sys/class/net/${vf_netdev[$1]}/carrier")" = "$2"; }

# pings INDEX ADDRESS [BYTES]: three echo requests with so much data are answered by the other kernel.
pings() {
    timeout 60 ip netns exec "vf$1" python3 - "$2" "${3:-56}" <<'PYTHON'
import socket
import sys

six = ":" in sys.argv[1]
echo = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM, 58 if six else 1)
echo.settimeout(15)
for number in range(3):
    data = bytes([number]) * int(sys.argv[2])
    echo.sendto(bytes([128 if six else 8]) + bytes(7) + data, (sys.argv[1], 0))
    answer = echo.recv(65536)
    if answer[0] != (129 if six else 0) or answer[8:] != data:
        sys.exit(f"not the answer: {answer[:16].hex()}")
PYTHON
}

# The port of rping: rdma_cm has no sockets that /proc lists.
listens_by_cm() { [[ $(ip netns exec vf0 rdma resource show cm_id) == *:7174* ]]; }
client() { timeout 100 ip netns exec vf1 rping -c -a 192.0.2.10 -C 20 -S 4000 -V; }
rping_passes() {
    local code
    timeout 100 ip netns exec vf0 rping -s -a 192.0.2.10 -C 20 -S 4000 -V >/tmp/server 2>&1 &
    wait_until 30 listens_by_cm && client
    code=$?
    [ "$code" = 0 ] || kill $!
    wait $! || code=1
    [ "$code" = 0 ] || cat /tmp/server
    return "$code"
}
# The probe finds the VFs' addresses by itself.
probe_passes() {
    local code
    timeout 100 ip netns exec vf0 "$probe" listen --device "${devices[0]}" --token T --deadline 90 >/tmp/server 2>&1 &
    timeout 100 ip netns exec vf1 "$probe" connect 192.0.2.10 --device "${devices[1]}" --token T --rdma-cm --iterations 20 --deadline 90
    code=$?
    wait $! || code=1
    [ "$code" = 0 ] || cat /tmp/server
    return "$code"
}
# How rping's client fails: rdma_cm's event and its error, or the call that failed.
failure() {
    client >/tmp/client 2>&1 && echo "it did not fail" && return
    sed -n 's/^cma event //p; /^rdma_/p' /tmp/client | head -1
}
# neighbour ORDER [OPTION...]: changes VF 1's entry for VF 0.
neighbour() { ip -n vf1 neighbour "$1" 192.0.2.10 dev "${vf_netdev[1]}" "${@:2}"; }

section "VFs"
echo 0 >"$pci_devices/$pf/sriov_drivers_autoprobe"
require "two VFs" make_vfs "$pf" 2
for index in 0 1; do
    require "VF $index has its GUIDs and an IPoIB netdev" make_port "$index"
    vf_netdev+=("$(netdev_of "$(vf_of "$pf" "$index")")")
    devices+=("$(rdma_of "$index")")
    expect "its driver has announced a communication manager" grep -q 0x2651e848 "/sys/class/infiniband/${devices[index]}/ports/1/cap_mask"
done
took "the section"

section "IP over InfiniBand"
for index in 0 1; do
    expect "VF $index has addresses" move_to_namespace "$index"
    expect "it has joined the broadcast group" wait_until 60 netdev_carrier_is "$index" 1
    expect_equal "and has the MTU of the group" 2044 "$(in_vf "$index" "cat /sys/class/net/${vf_netdev[index]}/mtu")"
done
expect "ping" pings 0 192.0.2.11
expect "the other way, with as much as fits into a datagram" pings 1 192.0.2.10 2016
expect "and with fragments" pings 1 192.0.2.10 8000
expect "ping of IPv6, whose neighbour discovery has a multicast group of its own" pings 0 2001:db8::11
expect "the sender's card has counted multicast" [ "$(counter 0 multicast_xmit_packets)" -gt 0 ]
expect "and the receiver's" [ "$(counter 1 multicast_rcv_packets)" -gt 0 ]
took "the section"

section "rdma_cm"
expect "rping" rping_passes
expect "vfpass-probe" probe_passes
took "the section"

section "without an answer about the path"
address=$(neighbour show | sed -n 's/.*lladdr \([^ ]*\).*/\1/p')
expect "the address of VF 0 is known" neighbour replace lladdr "$address" nud permanent
expect "the card loses all packets" card 1 lose 1
expect_equal "rping fails" "RDMA_CM_EVENT_ROUTE_ERROR, error -110" "$(failure)"
expect "the card loses none" card 1 clear
expect "rping passes again" rping_passes
took "the section"

section "no path between limited members"
expect "both VFs are limited members of the default partition" card 1 partition \
    "default=0x7fff : 0x0200000000002000=limited, 0x0200000000002001=limited ;"
expect "VF 1 has joined the broadcast group again" wait_until 60 netdev_carrier_is 1 1
expect_equal "rping fails" "RDMA_CM_EVENT_ROUTE_ERROR, error -22" "$(failure)"
expect "all ports are full members" card 1 partition all
for index in 0 1; do expect "VF $index has joined again" wait_until 60 netdev_carrier_is "$index" 1; done
expect "rping passes again" wait_until 60 rping_passes
took "the section"

section "without a subnet manager"
expect "it stops" card 1 subnet-manager down
for index in 0 1; do expect "VF $index has left the broadcast group" wait_until 60 netdev_carrier_is "$index" 0; done
expect "the address of VF 0 is forgotten" neighbour del
expect_equal "rping fails" "RDMA_CM_EVENT_ADDR_ERROR, error -110" "$(failure)"
expect "it starts" card 1 subnet-manager up
for index in 0 1; do expect "VF $index has joined again" wait_until 60 netdev_carrier_is "$index" 1; done
expect "ping" wait_until 60 pings 0 192.0.2.11
expect "rping passes again" rping_passes
took "the section"

section "everything goes"
for index in 0 1; do ip -n "vf$index" link set dev "${vf_netdev[index]}" netns 1 && ip netns delete "vf$index"; done
expect "the VFs are removed" make_vfs "$pf" 0
expect_equal "the kernel has no complaint" "" "$(complaints)"
expect_equal "the cards knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf[01].log)"
finish
