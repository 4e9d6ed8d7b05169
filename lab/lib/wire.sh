# shellcheck shell=bash disable=SC2154
# Sourced by lib.sh: a wire between guests. The stand-in's VFs have no port, so in the guest a virtio
# netdev serves as the port (module/wire.c). On the host a bridge connects them, with one tap for each port.
# The VF's counters are those of the tap, which the guest cannot forge.

wire_bridge=wire0
# RoCE with an MTU of 4096 needs a larger netdev MTU.
wire_mtu=9000

start_wire() {
    modprobe -a tun bridge || return
    ip link add "$wire_bridge" type bridge && ip link set "$wire_bridge" mtu "$wire_mtu" up
}

# wire_tap NAME NUMBER: the tap of the guest's port with this number, counted from 0.
wire_tap() { echo "wire-$1${2/#0/}"; }

# wire_xml NAME NUMBER: the guest's end of that wire.
wire_xml() {
    cat <<XML
<interface type='bridge'>
  <source bridge='$wire_bridge'/>
  <target dev='$(wire_tap "$1" "$2")'/>
  <model type='virtio'/>
  <mtu size='$wire_mtu'/>
  <address type='pci' domain='0x0000' bus='0x00' slot='0x0$((6 + $2))' function='0x0'/>
</interface>
XML
}

# wire_vf NAME: connects the guest's VFs to its wires, both in the order of their PCI addresses.
wire_vf() {
    # shellcheck disable=SC2016  # the guest's shell expands it
    guest_shell "$1" 'set -- /sys/bus/virtio/drivers/virtio_net/virtio*/net/*
        for vf in /sys/bus/pci/drivers/mlx5_core/0*; do
            wire=${1##*/}
            ip link set "$wire" mtu 9000
            echo "$wire" >"$vf/wire" || exit
            shift
        done'
}

# mirror_wire NAME PF INDEX [NUMBER]: run this in the background. Until the guest ends, it copies the tap's counters
# to the VF's on the PF; the tap receives what the guest sends. It starts no processes, which would take
# processor time from the guests.
mirror_wire() {
    local tap pause counter value values
    tap=/sys/class/net/$(wire_tap "$1" "${4:-0}")/statistics
    exec {pause}<> <(:)
    while [ -e "$tap" ]; do
        values=$3
        for counter in {rx,tx}_{packets,bytes}; do
            read -r value <"$tap/$counter" && values+=" $value"
        done
        echo "$values" >"$pci_devices/$2/vport_traffic"
        read -r -t 0.5 -u "$pause" || :
    done 2>/dev/null
}
