#!/bin/bash
# recipe.sh attach DOMAIN PF COUNT | detach DOMAIN PF XML_FILE
#
# What people run without vfpass: attaches COUNT VFs of the PF at that PCI address to a libvirt domain. This is the
# usual script with nothing slow added: builtins where possible, one process where needed, no sleep. It checks,
# reads back and records nothing beyond "set -e".
set -euo pipefail

action=${1:?attach or detach} domain=${2:?domain} pf=${3:?PCI address of the PF}
device=/sys/bus/pci/devices/$pf

hostdev() {
    local rest=${1#*:}
    printf "<hostdev mode='subsystem' type='pci' managed='no'><source>"
    printf "<address domain='0x%s' bus='0x%s' slot='0x%s' function='0x%s'/>" \
        "${1%%:*}" "${rest%%:*}" "${rest:3:2}" "${rest#*.}"
    printf '</source></hostdev>\n'
}

attach() {
    local count=$1 netdev index vf xml=/run/recipe.xml
    netdev=$(ls "$device/net")
    if [ "$(cat "$device/sriov_numvfs")" != "$count" ]; then
        echo "$count" >"$device/sriov_numvfs"
    fi
    modprobe vfio-pci
    for ((index = 0; index < count; index++)); do
        ip link set dev "$netdev" vf "$index" mac "$(printf '02:11:22:33:44:%02x' "$index")"
        ip link set dev "$netdev" vf "$index" vlan 100
        ip link set dev "$netdev" vf "$index" spoofchk on
        ip link set dev "$netdev" vf "$index" trust on
        ip link set dev "$netdev" vf "$index" state enable
        vf=$(basename "$(readlink "$device/virtfn$index")")
        if [ -e "/sys/bus/pci/devices/$vf/driver" ]; then
            echo "$vf" >"/sys/bus/pci/devices/$vf/driver/unbind"
        fi
        echo vfio-pci >"/sys/bus/pci/devices/$vf/driver_override"
        echo "$vf" >/sys/bus/pci/drivers/vfio-pci/bind
        hostdev "$vf" >"$xml"
        virsh --quiet attach-device "$domain" "$xml" --config
    done
}

# Restores the domain's XML, sets neutral values and unbinds the VFs, so that they can be removed.
detach() {
    local link vf netdev
    netdev=$(ls "$device/net")
    virsh --quiet define "$1"
    for link in "$device"/virtfn*; do
        vf=$(basename "$(readlink "$link")")
        [ -e "/sys/bus/pci/drivers/vfio-pci/$vf" ] || continue
        echo "$vf" >/sys/bus/pci/drivers/vfio-pci/unbind
        echo >"/sys/bus/pci/devices/$vf/driver_override"
        ip link set dev "$netdev" vf "${link##*virtfn}" mac 00:00:00:00:00:00 vlan 0 spoofchk off \
            trust off state auto
    done
}

case $action in
attach) attach "${4:?number of VFs}" ;;
detach) detach "${4:?XML file with the previous definition}" ;;
*) echo "recipe.sh: unknown action $action: use attach or detach" >&2; exit 2 ;;
esac
