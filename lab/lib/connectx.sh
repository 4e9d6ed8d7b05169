# shellcheck shell=bash disable=SC2154
# Sourced by the tests of the machines with a ConnectX after lib.sh: frames between VFs, which all go through the card's switch.
# A VF is in a network namespace of the host under test, or in a guest.

# By index: the VF's netdev and MAC, and the guest that has it.
vf_netdev=() vf_mac=() vf_guest=()

# For `frames`, which a guest has in its own path.
PATH=$PATH:$lab_build

carrier_is() { test "$(cat "/sys/class/net/$2/carrier")" = "$1"; }

has_netdev() { test -n "$(netdev_of "$1")"; }

# complaints: prints the kernel's warnings and the errors of the mlx5 drivers. A driver that the lab has built has no signature.
complaints() {
    dmesg | grep -E 'WARNING:|BUG:|refcount|mlx5.*(timeout|failed|error|[Ww]arn)' | grep -v 'module verification failed' || :
}

# in_vf INDEX TEXT: runs a shell command where the VF's netdev is.
in_vf() {
    if [ -n "${vf_guest[$1]:-}" ]; then guest_shell "${vf_guest[$1]}" "$2"; else ip netns exec "vf$1" sh -c "$2"; fi
}

# put_in_namespace PF INDEX: moves the netdev of the VF into the namespace vfINDEX, sets it up and waits for its link.
put_in_namespace() {
    local netdev
    wait_until 60 has_netdev "$(vf_of "$1" "$2")" || return
    netdev=$(netdev_of "$(vf_of "$1" "$2")")
    ip netns add "vf$2" && ip link set dev "$netdev" netns "vf$2" && in_vf "$2" "ip link set dev $netdev up" &&
        wait_until 30 vf_carrier_is "$2" 1
}

# name_vf INDEX: sets vf_netdev and vf_mac. Not part of the above, because a check runs in a subshell.
name_vf() {
    vf_netdev[$1]=$(in_vf "$1" 'ls /sys/class/net' | grep -vx lo)
    vf_mac[$1]=$(in_vf "$1" "cat /sys/class/net/${vf_netdev[$1]}/address")
}

vf_carrier_is() { test "$(in_vf "$1" 'cat /sys/class/net/e*/carrier')" = "$2"; }

# delivered [SOURCE [DESTINATION [VLAN]]]: VF 0 sends three frames, by default from its own MAC to VF 1's, and then the witness,
# VF 2, sends one. Prints the sources of the frames that VF 1 has received before that of the witness, each once. The
# variables sender, receiver and witness change the roles, and patience the seconds that VF 1 waits for the witness.
delivered() {
    local from=${sender:-0} to=${receiver:-1} last=${witness:-2}
    local heard=/tmp/heard-$to listener=/tmp/listener-$to
    in_vf "$to" "frames receive ${vf_netdev[$to]} ${vf_mac[$last]} ${patience:-60} >$heard 2>&1 </dev/null &
        echo \$! >$listener
        until grep -q listening $heard; do sleep 0.1; done" || return
    in_vf "$from" "frames send ${vf_netdev[$from]} ${1:-${vf_mac[$from]}} ${2:-${vf_mac[$to]}} 3 ${3:-}"
    in_vf "$last" "frames send ${vf_netdev[$last]} ${vf_mac[$last]} ${vf_mac[$to]} 1"
    in_vf "$to" "while kill -0 \$(cat $listener) 2>/dev/null; do sleep 0.1; done
        grep -qx ${vf_mac[$last]} $heard || echo 'no witness'
        grep -vx -e listening -e ${vf_mac[$last]} $heard | sort -u"
}

# vf_counter PF_NETDEV INDEX rx|tx: the packets that the card has counted for the VF.
vf_counter() {
    ip -s -d -j link show dev "$1" | jq ".[0].vfinfo_list[] | select(.vf == $2).stats.$3 | .packets // .$3_packets"
}

# representors_are NAMES: whether the VFs' representors have these phys_port_names.
representors_are() { test "$(representors)" = "$1"; }

representors() { cat /sys/class/net/*/phys_port_name 2>/dev/null | grep vf | sort | xargs; }

# port_function PF INDEX: what devlink shows of the VF's port. The driver warns at each request that this card has no limit of EQs.
port_function() { devlink -j port show "$(devlink_port "$1" "$2")" 2>/dev/null | jq -c '.port[].function'; }

# devlink_port PF INDEX: devlink's port of the VF.
devlink_port() {
    devlink -j port show 2>/dev/null | jq -r --arg pf "pci/$1/" --argjson vf "$2" \
        '.port | to_entries[] | select((.key | startswith($pf)) and .value.flavour == "pcivf" and .value.vfnum == $vf).key'
}

# migratable PF INDEX: prints enable, disable or, where the firmware cannot, null.
migratable() { port_function "$1" "$2" | jq -r .migratable; }

# moved VPORT saved|loaded: how often the first card of this host has done so with the VF's state, which is longer than the mark of a running one.
moved() { grep -c "migration: vport $1 $2, [0-9]\{3,\} bytes" /lab/control/pf0.log; }

# permit_migration ALIAS: adds to a domain's XML what makes QEMU move the device without page tracking, which it does only on demand; libvirt
# has no element for that.
permit_migration() {
    local schema="xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'" property
    property="<qemu:property name='enable-migration' type='string' value='on'/>"
    sed "s|<domain type='kvm'>|<domain type='kvm' $schema>|
        s|</domain>|<qemu:override><qemu:device alias='$1'><qemu:frontend>$property</qemu:frontend></qemu:device></qemu:override>&|"
}

# vf_states PF: a line for each VF: its driver, its override, and what devlink's port of it has.
vf_states() {
    local vf index
    for vf in "/sys/bus/pci/devices/$1"/virtfn*; do
        index=${vf##*virtfn} vf=$(basename "$(readlink "$vf")")
        echo "VF $vf: driver $(driver_of "$vf"), override $(cat "/sys/bus/pci/devices/$vf/driver_override")," \
            "$(port_function "$1" "$index")"
    done
}

# representor_of PF INDEX: the netdev.
representor_of() { devlink -j port show "$(devlink_port "$1" "$2")" 2>/dev/null | jq -r '.port[].netdev'; }

# join_representors PF INDEX...: sends the frames that one of the representors receives to all others, as a hub does. All of them go through
# the host. A bridge would not: mlx5 refuses to be its port unless the card can match a frame's source by metadata
# (mlx5_esw_bridge_create), which the model cannot. A VF has a link while its representor is up (mlx5e_rep_open).
join_representors() {
    local pf=$1 index representors=()
    shift
    for index; do representors+=("$(representor_of "$pf" "$index")"); done
    join_netdevs "${representors[@]}"
}

# join_netdevs NETDEV...: join_representors by name. In switchdev mode the PF's netdev represents the wire.
join_netdevs() {
    local one
    modprobe -a sch_ingress cls_matchall act_mirred || return
    for one; do repeat_frames "$one" "$@" || return; done
}

# repeat_frames FROM TO...: TO may contain FROM.
repeat_frames() {
    local from=$1 to actions=()
    shift
    for to; do [ "$to" = "$from" ] || actions+=(action mirred egress mirror dev "$to"); done
    tc qdisc add dev "$from" clsact && tc filter add dev "$from" ingress matchall skip_hw "${actions[@]}" && ip link set dev "$from" up
}
