# shellcheck shell=bash disable=SC2154
# Sourced by the tests of machine igb after lib.sh: a real NIC model with the kernel's drivers, and guests
# whose VFs exchange frames.

# load_igb: returns when the PF is bound, up and has a link. Also loads the VFs' driver, because L1 has no
# udev to do so.
load_igb() {
    local netdev
    modprobe -a igb igbvf || return
    wait_until 20 test -d "$pci_devices/$(pf_address 0)/net" || return
    netdev=$(pf_netdev 0)
    ip link set dev "$netdev" up && wait_until 30 grep -q 1 "/sys/class/net/$netdev/carrier"
}

# show_registers: makes the card's VF counters available through rtnetlink, as drivers of newer cards do
# (igb/igb_registers.c).
show_registers() { insmod "$lab_build/igb/igb_registers.ko" "pf=$(pf_address 0)"; }

hide_registers() { rmmod igb_registers; }

# spoof_check_bits: the bits in the card's transmit switch: bit N is VF N's MAC check, bit N + 8 its VLAN check.
spoof_check_bits() { echo $((0x$(cat /sys/module/igb_registers/parameters/dtxswc) & 0xffff)); }

# vf_counter INDEX DIRECTION UNIT, such as "vf_counter 0 tx packets": a counter from rtnetlink. iproute2 calls
# the sent packets tx_packets.
vf_counter() {
    ip -s -d -j link show dev "$(pf_netdev 0)" |
        jq ".[0].vfinfo_list[] | select(.vf == $1).stats.$2 | .$3 // .$2_$3"
}

# vf_mac INDEX: the VF's MAC according to the PF.
vf_mac() {
    ip -d -j link show dev "$(pf_netdev 0)" | jq -r ".[0].vfinfo_list[] | select(.vf == $1).address"
}

# guest_up NAME ADDRESS: sets the VF's netdev up with this address and waits for the link, which igbvf gets from the PF.
guest_up() {
    guest_shell "$1" "ip link set lo up; ip link set eth0 up; ip address add $2/24 dev eth0
        tries=0
        until grep -q 1 /sys/class/net/eth0/carrier; do
            usleep 200000; tries=\$((tries + 1)); [ \$tries -lt 300 ] || exit 1
        done"
}

# reaches NAME ADDRESS: pings ADDRESS; exit code 1 without an answer.
reaches() { guest_shell "$1" "ping -c 3 -W 5 $2"; }

# listen NAME LAST: starts a listener in the guest that records the sources of our frames until the first from
# LAST. Returns when it is listening.
listen() {
    guest_shell "$1" "frames receive eth0 $2 90 >/tmp/frames 2>&1 </dev/null &
        echo \$! >/tmp/listener
        until grep -q listening /tmp/frames; do usleep 100000; done"
}

# heard NAME: prints each recorded source once, after the listener has ended.
heard() {
    # shellcheck disable=SC2016  # the guest's shell expands it
    guest_shell "$1" 'while kill -0 $(cat /tmp/listener) 2>/dev/null; do usleep 200000; done
        sort -u /tmp/frames | grep -v listening | xargs'
}

# send_frames NAME SOURCE DESTINATION [COUNT]: sends frames from SOURCE, which may differ from the VF's MAC.
send_frames() { guest_shell "$1" "frames send eth0 $2 $3 ${4:-1}"; }
