# shellcheck shell=bash disable=SC2154
# Sourced by lib.sh: what a card would have counted for the VFs of a guest with SoftRoCE. The guest
# writes its counts to the mailbox (module/mailbox.h explains why); these functions copy them to the PF.

# vport_of VF_ADDRESS: prints the PF's directory and the VF's index, or nothing if the device is not a VF.
vport_of() {
    local pf link
    [ -e "$pci_devices/$1/physfn" ] || return 0
    pf=$(readlink -f "$pci_devices/$1/physfn")
    for link in "$pf"/virtfn*; do
        [[ $(readlink "$link") != */"$1" ]] || echo "$pf ${link##*virtfn}"
    done
}

# mirror_traffic NAME: run this in the background. It copies the guest's counts to the vports of the VFs
# that it has now, until the guest ends. Kill it to simulate a card whose counters do not change.
mirror_traffic() {
    local -A vports=()
    local host guest address packets bytes pf number
    while read -r host guest; do
        vports[$guest]=$(vport_of "$host")
    done < <(virsh dumpxml "$1" | awk -f "$lab_directory/hooks/guest-addresses.awk")
    while read -r address packets bytes; do
        # libvirt removes the file when the guest ends.
        [ -e "/run/libvirt/qemu/$1.pid" ] || return 0
        read -r pf number <<<"${vports[$address]:-}"
        [ -z "$pf" ] || echo "$number $packets $bytes" >"$pf/vport_traffic"
    done < <("$lab_build/module/mailbox_traffic" "/dev/shm/lab-mailbox-$1")
}
