# shellcheck shell=bash disable=SC2154
# Sourced by lib.sh: what a card would have counted for the VFs of a guest with SoftRoCE. The guest
# counts it and writes it into its mailbox (module/mailbox.h says why); here it reaches the PF.

# vport_of VF_ADDRESS: prints the PF's folder and the VF's index, or nothing for what is no VF.
vport_of() {
    local pf link
    [ -e "$pci_devices/$1/physfn" ] || return 0
    pf=$(readlink -f "$pci_devices/$1/physfn")
    for link in "$pf"/virtfn*; do
        [[ $(readlink "$link") != */"$1" ]] || echo "$pf ${link##*virtfn}"
    done
}

# mirror_traffic NAME: to be run in the background. Until the guest ends, the vports of the VFs that it
# has now show what it counts. Killing it is a card whose counters stand still.
mirror_traffic() {
    local -A vports=()
    local host guest address packets bytes pf number
    while read -r host guest; do
        vports[$guest]=$(vport_of "$host")
    done < <(virsh dumpxml "$1" | awk -f "$lab_directory/hooks/guest-addresses.awk")
    while read -r address packets bytes; do
        # libvirt takes the file away with the guest.
        [ -e "/run/libvirt/qemu/$1.pid" ] || return 0
        read -r pf number <<<"${vports[$address]:-}"
        [ -z "$pf" ] || echo "$number $packets $bytes" >"$pf/vport_traffic"
    done < <("$lab_build/module/mailbox_traffic" "/dev/shm/lab-mailbox-$1")
}
