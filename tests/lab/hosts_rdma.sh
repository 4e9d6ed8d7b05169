# RDMA between the cards of two hosts (lab/connectx), without vfpass: programs of rdma-core and perftest between a VF of each host. A wire
# joins the cards; ssh, and the programs' own TCP connections, have a link of their own.
# covers: lab/connectx lab/machines/connectx-hosts lab/lib/link.sh lab/outside/other_hosts.sh tests/lab/rdma_common.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh
# shellcheck source=SCRIPTDIR/rdma_common.sh
source /vfpass/tests/lab/rdma_common.sh

role=$1
declare -A numbers=([first]=1 [second]=2)
number=${numbers[$role]}
second=10.98.0.2
there() { ssh -o BatchMode=yes "root@$second" "$@"; }

# wait_for WHAT SECONDS FILE: of the other host.
wait_for() { expect "$1" wait_until "$2" test -e "/lab/link/$3"; }

section "$role host: a VF"
ip link set lo up
require "mlx5_core and mlx5_ib load" load_mlx5 rdma
modprobe -a ib_uverbs rdma_ucm
pf=$(pf_address 0)
ip link set "$(netdev_of "$pf")" up
expect "a VF is created" make_vfs_with_macs "$pf" "$number" 1
vf=$(vf_of "$pf" 0)
require "it has a netdev" wait_until 60 has_netdev "$vf"
require "it has an RDMA device" wait_until 60 test -d "/sys/bus/pci/devices/$vf/infiniband"
netdev=$(netdev_of "$vf") device=$(rdma_of "$vf")
ip link set "$netdev" up
expect "it has a link" wait_until 60 carrier_is 1 "$netdev"
expect "it has a GID" wait_until 60 gid_of "$device"
gid=$(gid_of "$device")
expect "the link to the other host is up" join_link "$number"

if [ "$role" = second ]; then
    echo "$device $gid $netdev" >/lab/link/second
    wait_for "the first host's key exists" 600 key.pub
    expect "ssh is served" start_ssh_server
    touch /lab/link/ready
    wait_for "the first host has finished" 1500 'done'
    expect_equal "the kernel has no complaint" "" "$(complaints)"
    expect_equal "the card knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf0.log)"
    finish
fi

expect "an ssh key is created" make_ssh_key
wait_for "the second host is ready" 600 ready
expect "ssh reaches the second host" there true
read -r its_device its_gid its_netdev </lab/link/second
took "both hosts"

# The port of the programs' own TCP connection.
tcp_port=20000
listens_there() { there "grep -q ':$(printf %04X "$tcp_port") .* 0A ' /proc/net/tcp /proc/net/tcp6"; }

# exchange OPTION_OF_GID PROGRAM [OPTION...]: the second host is the server.
exchange() {
    local gid_option=$1 code
    shift
    there "timeout 200 $* -d $its_device $gid_option $its_gid -p $tcp_port" >/tmp/server 2>&1 &
    wait_until 60 listens_there && timeout 200 "$@" -d "$device" "$gid_option" "$gid" -p "$tcp_port" "$second"
    code=$?
    wait $! || code=1
    [ "$code" = 0 ] || cat /tmp/server
    return "$code"
}

section "between the cards of two hosts"
expect "ib_write_bw" exchange -x ib_write_bw -n 100 -s 65536 -F
expect "ib_read_lat" exchange -x ib_read_lat -n 100 -F
expect "ib_send_bw" exchange -x ib_send_bw -n 100 -s 65536 -F
expect "ibv_rc_pingpong" exchange -g ibv_rc_pingpong -n 50 -c
expect "ibv_ud_pingpong" exchange -g ibv_ud_pingpong -n 50
took "the section"

# In a namespace, because the PF's netdev would answer for the VF's address as well.
# in_namespace NETDEV NUMBER: commands that give the VF the address 192.0.2.NUMBER there.
in_namespace() {
    echo "ip netns add vf0 && ip link set dev $1 netns vf0 && ip -n vf0 addr add 192.0.2.$2/24 dev $1 && ip -n vf0 link set $1 up"
}
listens_by_cm() { there "ip netns exec vf0 rdma resource show cm_id" | grep -q :7174; }
its_address_gid() { there "grep -q 'c000:0202\$' /sys/class/infiniband/$its_device/ports/1/gids/*"; }
rping_across() {
    local code
    there "timeout 200 ip netns exec vf0 rping -s -a 192.0.2.2 -C 20 -S 4000 -V" >/tmp/server 2>&1 &
    wait_until 60 listens_by_cm && timeout 200 ip netns exec vf0 rping -c -a 192.0.2.2 -C 20 -S 4000 -V
    code=$?
    wait $! || code=1
    [ "$code" = 0 ] || cat /tmp/server
    return "$code"
}
section "rdma_cm"
expect "the VF has an address" bash -c "$(in_namespace "$netdev" 1)"
expect "and a GID for it" wait_until 60 has_address_gid "$device" c000:0201
expect "the other VF has one" there "$(in_namespace "$its_netdev" 2)"
expect "and a GID for it" wait_until 60 its_address_gid
expect "rping" rping_across
took "the section"

touch /lab/link/done
expect_equal "the kernel has no complaint" "" "$(complaints)"
expect_equal "the card knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf0.log)"
finish
