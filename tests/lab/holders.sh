# The holders of a VF, for every way in which a host can use it: host::findHolders on a real kernel.
# covers: src/host/holders src/plan/judge_holders.cpp src/apply/holder_gate.cpp tests/lab/print_holders.cpp tests/lab/hold_file.cpp tests/lab/local_user.py
# shellcheck shell=bash disable=SC2154,SC2217  # of lab/lib; sleep holds what it has open
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

holders() { /vfpass/build/tests/lab/print-holders "$@"; }

# held TITLE TEXT: the VF has exactly one holder, whose description matches TEXT (an extended regular expression).
held() {
    capture holders "$vf"
    if [ "$last_code" = 0 ] && [ "$(wc -l <<<"$last_output")" = 1 ] &&
        grep -qE "^$vf $2\$" <<<"$last_output"; then
        pass "$1"
    else
        flunk "$1 (expected \"$vf $2\")"
    fi
}

# hidden TITLE TEXT WAY FILE [ADDRESS]: as held, while hold-file keeps FILE open in that way; user is its PID.
hidden() {
    local title=$1 text=$2
    shift 2
    /vfpass/build/tests/lab/hold-file "$@" >/run/hold-file 2>&1 &
    user=$!
    if ! wait_until 60 grep -q ready /run/hold-file; then
        flunk "$title ($(cat /run/hold-file))"
        return
    fi
    held "$title" "${text//PID/$user}"
    end "$user"
    idle "$title: ended"
}

has_no_holder() { test "$(holders "$vf")" = ""; }

without_netdev="unknown bound to mlx5_core but has no netdev in any network namespace; cannot tell who uses it"

idle() { expect_equal "$1: no holder" "" "$(holders "$vf" 2>&1)"; }

# end PID: kills a child process.
end() {
    kill "$1"
    wait "$1" 2>/dev/null
}

# device_nodes: creates the device nodes, which udev would do.
device_nodes() {
    local device
    rm -rf /dev/infiniband
    mkdir /dev/infiniband
    for device in /sys/class/infiniband_verbs/uverbs*; do
        mknod "/dev/infiniband/$(basename "$device")" c \
            "$(cut -d: -f1 "$device/dev")" "$(cut -d: -f2 "$device/dev")"
    done
}

load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 2
vf=$(vf_of "$pf" 0) other=$(vf_of "$pf" 1)
wait_until 60 test -d "$pci_devices/$vf/net"
netdev=$(netdev_of "$vf")
modprobe -a macvlan bonding bridge dummy 8021q

section "idle"
idle "a netdev that is down"
expect_equal "a function that does not exist has no holder" "" "$(holders 0000:7f:1f.7)"

section "a netdev in our own network namespace"
ip link set "$netdev" up
held "a netdev that is up" "netdev its netdev $netdev is up"
ip link set "$netdev" down
idle "the netdev is down again"
ip addr add 10.98.0.1/24 dev "$netdev"
held "a netdev that is down and has an address" "netdev its netdev $netdev has addresses"
ip addr flush dev "$netdev"
ip link add br0 type bridge && ip link set "$netdev" master br0
held "a port of a bridge" "netdev its netdev $netdev belongs to bridge br0"
ip link del br0
ip link add bond9 type bond && ip link set "$netdev" master bond9
held "a port of a bond" "netdev its netdev $netdev is up(, | and )belongs to bond bond9.*"
ip link set "$netdev" nomaster
ip link del bond9
ip link set "$netdev" down
idle "removed from bridge and bond"
ip link add link "$netdev" name mv0 type macvlan mode bridge
held "a netdev with a macvlan" "netdev its netdev $netdev carries macvlan mv0"
ip netns add green
ip link set mv0 netns green
held "a netdev whose macvlan is in another namespace" "netdev its netdev $netdev carries macvlan mv0 of network namespace green"
ip netns del green
wait_until 60 has_no_holder
ip link add link "$netdev" name "$netdev.5" type vlan id 5
held "a netdev with a VLAN" "netdev its netdev $netdev carries vlan $netdev.5"
ip link del "$netdev.5"
idle "without macvlan and VLAN"

section "a netdev in another network namespace"
ip netns add blue
ip link set "$netdev" netns blue
expect_equal "the netdev is not in our namespace" "" "$(netdev_of "$vf")"
held "a netdev in another namespace" "netdev its netdev $netdev is in network namespace blue"
expect_contains "vf list names the namespace" "netdev $netdev in network namespace blue" /vfpass/build/sbin/vfpass vf list
ip -n blue link set "$netdev" up
held "a netdev that is up" "netdev its netdev $netdev is in network namespace blue"
expect_equal "the other VF has no holder" "" "$(holders "$other")"
sleep 600 </run/netns/blue &
user=$!
wait_until 60 grep -q sleep "/proc/$user/comm"
ip netns del blue
held "a namespace held by a descriptor only" "netdev its netdev $netdev is in a network namespace that sleep \(pid $user\) has open"
end "$user"
wait_until 60 test -d "$pci_devices/$vf/net"
ip link set "$netdev" down
idle "the netdev is in our namespace again"
unshare --net sleep 600 &
resident=$!
# shellcheck disable=SC2016  # the inner shell expands it
wait_until 60 sh -c 'test "$(readlink /proc/$0/ns/net)" != "$(readlink /proc/self/ns/net)"' "$resident"
ip link set "$netdev" netns "$resident"
held "a namespace held by a process only" "netdev its netdev $netdev is in the network namespace of (sleep|unshare) \(pid $resident\)"
end "$resident"
wait_until 60 test -d "$pci_devices/$vf/net"
# The mount is in another mount namespace, hidden from ours, and no process is in the network namespace.
# shellcheck disable=SC2016
unshare --mount sh -c 'mount --make-rprivate / && touch /run/hidden && unshare --net=/run/hidden true &&
    ip link set "$0" netns /run/hidden; echo done >/run/hidden.done; exec sleep 600' "$netdev" &
hider=$!
wait_until 60 test -e /run/hidden.done
expect_equal "the netdev is not in our namespace" "" "$(netdev_of "$vf")"
held "a namespace mounted only in another mount namespace" "netdev its netdev $netdev is in the network namespace mounted at /run/hidden"
end "$hider"
wait_until 60 test -d "$pci_devices/$vf/net"
idle "the netdev is in our namespace once more"

section "a bound driver without a netdev"
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
idle "without a driver"
card 0 fault INIT_HCA function=vf0 never
echo "$vf" >/sys/bus/pci/drivers_probe &
probe=$!
expect "the driver waits for the firmware" wait_until 60 grep -q 'vf0 INIT_HCA - .*never' /lab/control/pf0.log
held "a driver that is still probing" "$without_netdev"
card 0 clear
wait "$probe"
idle "after the netdev has appeared"
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
# mlx5_core's own part succeeds, and its netdev's does not (mlx5e_create_mdev_resources).
card 0 fault ALLOC_TRANSPORT_DOMAIN function=vf0
echo "$vf" >/sys/bus/pci/drivers_probe
held "a netdev that has failed" "$without_netdev"
card 0 clear
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
echo "$vf" >/sys/bus/pci/drivers_probe
expect "the VF has a netdev" test -d "$pci_devices/$vf/net"
idle "after another probe"

# rdma_holders DEVICE: a verbs program, and one that only has the device file open, use the RDMA device on the VF's netdev.
rdma_holders() {
    local device=$1 verbs server user
    device_nodes
    expect "$device: its port is active" wait_until 60 grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state"
    expect "$device: it has the netdev's address" wait_until 60 grep -rq ffff:0a61:0001 "/sys/class/infiniband/$device/ports/1/gids"
    ib_write_bw -d "$device" >/tmp/server 2>&1 &
    server=$!
    expect "$device: a verbs program uses it" wait_until 60 sh -c "rdma resource show ctx dev $device | grep -q ctxn"
    ip addr flush dev "$netdev"
    ip link set "$netdev" down
    held "$device: a verbs program is the holder" \
        "rdma (process $server \(ib_write_bw\)|ib_write_bw \(pid $server\)) uses its RDMA device $device"
    end "$server"
    idle "$device: unused"
    for verbs in /sys/class/infiniband_verbs/uverbs*; do
        [ "$(cat "$verbs/ibdev")" != "$device" ] || break
    done
    sleep 600 <"/dev/infiniband/${verbs##*/}" &
    user=$!
    wait_until 60 grep -q sleep "/proc/$user/comm"
    held "$device: a program with an open device file" "rdma sleep \(pid $user\) uses its RDMA device $device"
    end "$user"
    idle "$device: closed"
}

# use_netdev: sets the VF's netdev up, which gives its RDMA device a GID. A VF has carrier only while its PF is up, and a verbs
# program needs an active port.
use_netdev() {
    netdev=$(netdev_of "$vf")
    ip link set "$(pf_netdev 0)" up
    ip link set "$netdev" up
    ip addr add 10.97.0.1/24 dev "$netdev"
}

section "verbs over SoftRoCE"
modprobe -a crc32_generic rdma_rxe
use_netdev
expect "a SoftRoCE link is added" rdma link add rxe0 type rxe netdev "$netdev"
rdma_holders rxe0
rdma link del rxe0

section "verbs over the VF's own RDMA device"
expect "mlx5_ib loads" modprobe mlx5_ib
expect "the VF has an RDMA device" wait_until 60 test -d "$pci_devices/$vf/infiniband"
idle "an RDMA device that only the kernel uses"
use_netdev
rdma_holders "$(ls "$pci_devices/$vf/infiniband")"
ip link set "$(pf_netdev 0)" down
# modprobe would unload mlx5_core, too.
expect "mlx5_ib is unloaded" rmmod mlx5_ib

section "VFIO"
require "the VF is bound to vfio-pci" bind_to "$vf" vfio-pci
idle "on vfio-pci"
sleep 600 <>"/dev/vfio/$(iommu_group_of "$vf")" &
user=$!
wait_until 60 grep -q sleep "/proc/$user/comm"
held "a program with the VFIO group open" "vfio sleep \(pid $user\) has it open through VFIO"
end "$user"
idle "after the group was closed"
group=/dev/vfio/$(iommu_group_of "$vf")
number=$(cat "/sys/class/vfio/$(iommu_group_of "$vf")/dev")
mknod /run/harmless c "${number%:*}" "${number#*:}"
sleep 600 <>/run/harmless &
user=$!
wait_until 60 grep -q sleep "/proc/$user/comm"
held "the group by a node outside /dev" "vfio sleep \(pid $user\) has it open through VFIO"
end "$user"
# shellcheck disable=SC2016  # the inner shell expands it
unshare --mount sh -c 'mount --make-rprivate / && mount -t tmpfs none /dev && mkdir /dev/vfio && : >"$0" &&
    echo done >/run/named && exec sleep 600 <"$0"' "$group" &
user=$!
wait_until 60 grep -q sleep "/proc/$user/comm"
idle "a file that only has the name of the group"
end "$user"
named="vfio hold-file \(pid PID\) has it open through VFIO"
hidden "the group in the table of a thread" "$named" thread "$group"
hidden "the group in a process whose main thread has ended" "$named" orphan "$group"
kernel="vfio the kernel reports it as open through VFIO, .*"
# Under emulation two seconds may not suffice to read them all; then the kernel decides.
hidden "the group behind 66,000 descriptors" "($named|$kernel hold-file \\(pid PID\\) .*)" many "$group"
hidden "the device in the queue of a socket" "$kernel" queue "$group" "$vf"
hidden "a BAR that is mapped after everything was closed" "$kernel" map "$group" "$vf"
echo >"$pci_devices/$vf/driver_override"

section "what other users of the host do"
require "the VF is bound to mlx5_core" bind_to "$vf" mlx5_core
wait_until 60 test -d "$pci_devices/$vf/net"
netdev=$(netdev_of "$vf")
idle "a netdev that is down"
attack name "$vf"
idle "a program of root that a user started by the helper's name"
end_attack
attack links "$vf"
idle "1,360 links with alternative names"
expect "the VF is moved into that namespace" ip link set "$netdev" netns "$attacker"
# Either is a refusal: in an emulated machine the time may not suffice to find the netdev there.
held "a VF in that namespace" "(netdev its netdev $netdev is in the network namespace of python3 \(pid $attacker\)|unknown bound to mlx5_core but has no netdev in any network namespace that can be read; .*)"
expect_equal "the other VF has no holder" "" "$(holders "$other" 2>&1)"
end_attack
wait_until 60 test -d "$pci_devices/$vf/net"
# Until the kernel has removed the attacker's links, every query waits for its lock (RTNL).
wait_until 60 timeout 1 ip link show "$(netdev_of "$vf")"
idle "after the attacks"

section "cost"
# One process each, so that the ratio is meaningful.
time_of() {
    local before after
    before=$(date +%s%N)
    "$@" >/dev/null
    after=$(date +%s%N)
    echo "$(((after - before) / 1000))"
}
reader=$(time_of holders --repeat 10 "$vf" "$other")
list=$(time_of sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do ip -d link; done')
echo "   ten times findHolders for two VFs: $reader us; ten times ip -d link: $list us"

finish
