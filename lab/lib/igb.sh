# shellcheck shell=bash disable=SC2154
# Sourced by the tests of machine igb, after lib.sh: a real NIC, its kernel drivers, and guests whose VFs
# exchange frames.

# load_igb: the PF is bound, up and has a link when it returns. Nothing loads the VFs' driver by itself,
# because L1 has no udev.
load_igb() {
    local netdev
    modprobe -a igb igbvf || return
    wait_until 20 test -d "$pci_devices/$(pf_address 0)/net" || return
    netdev=$(pf_netdev 0)
    ip link set dev "$netdev" up && wait_until 30 grep -q 1 "/sys/class/net/$netdev/carrier"
}

# show_registers: what the card counts for its VFs reaches rtnetlink, as the drivers of newer cards have it
# (igb/igb_registers.c).
show_registers() { insmod "$lab_build/igb/igb_registers.ko" "pf=$(pf_address 0)"; }

hide_registers() { rmmod igb_registers; }

# spoof_check_bits: in the card's transmit switch; bit N is VF N's for MACs, and N + 8 for VLANs.
spoof_check_bits() { echo $((0x$(cat /sys/module/igb_registers/parameters/dtxswc) & 0xffff)); }

# vf_counter INDEX DIRECTION UNIT, such as "vf_counter 0 tx packets": what rtnetlink says. iproute2 calls
# the sent ones tx_packets.
vf_counter() {
    ip -s -d -j link show dev "$(pf_netdev 0)" |
        jq ".[0].vfinfo_list[] | select(.vf == $1).stats.$2 | .$3 // .$2_$3"
}

# vf_mac INDEX: the VF's MAC as the PF has it.
vf_mac() {
    ip -d -j link show dev "$(pf_netdev 0)" | jq -r ".[0].vfinfo_list[] | select(.vf == $1).address"
}

# guest_up NAME ADDRESS: its VF's netdev, up and with this address. igbvf asks the PF for its link.
guest_up() {
    guest_shell "$1" "ip link set lo up; ip link set eth0 up; ip address add $2/24 dev eth0
        tries=0
        until grep -q 1 /sys/class/net/eth0/carrier; do
            usleep 200000; tries=\$((tries + 1)); [ \$tries -lt 300 ] || exit 1
        done"
}

# reaches NAME ADDRESS: exit code 1 when no answer came.
reaches() { guest_shell "$1" "ping -c 3 -W 5 $2"; }

# listen NAME LAST: the guest notes the sources of frames of ours that arrive, up to the first from LAST.
# Ends when it listens.
listen() {
    guest_shell "$1" "frames receive eth0 $2 90 >/tmp/frames 2>&1 </dev/null &
        echo \$! >/tmp/listener
        until grep -q listening /tmp/frames; do usleep 100000; done"
}

# heard NAME: those sources, each once; fails when the last frame has not come.
heard() {
    # shellcheck disable=SC2016  # the guest's shell expands it
    guest_shell "$1" 'while kill -0 $(cat /tmp/listener) 2>/dev/null; do usleep 200000; done
        sort -u /tmp/frames | grep -v listening | xargs'
}

# send_frames NAME SOURCE DESTINATION [COUNT]: the frame's source is SOURCE, whatever the VF's is.
send_frames() { guest_shell "$1" "frames send eth0 $2 $3 ${4:-1}"; }
