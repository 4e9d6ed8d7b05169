# shellcheck shell=bash disable=SC2154
# Sourced by real_guest.sh: the state of an interface according to the guest's kernel and its network manager, whose
# name is in `manager`.

# guest_files: every file with its mode and checksum.
# shellcheck disable=SC2016  # the guest's shell expands it
guest_files() {
    guest_shell train0 'find /etc /var/lib/vfpass* 2>/dev/null | sort | while read -r path; do echo "$path"; done |
        xargs -d "\n" stat -c "%n %F %a %u %g"
        find /etc /var/lib/vfpass* -type f 2>/dev/null | sort | xargs -d "\n" md5sum'
}

# guest_interface NAME: the interface's settings, without its name and values that a manager may update at any time.
guest_interface() {
    guest_shell train0 "ip -o address show dev $1 scope global | sed 's/^[0-9]*: $1 *//; s/ $1.* valid_lft.*//; s/ valid_lft.*//'
        cd /sys/class/net/$1 && cat mtu address && cd /proc/sys/net/ipv4/conf/$1 && cat arp_announce arp_ignore"
}

# kernel_has NAME ADDRESS MTU
kernel_has() {
    guest_shell train0 "ip -o address show dev $1 | grep -qF ' $2 ' && [ \$(cat /sys/class/net/$1/mtu) = $3 ]"
}

kernel_has_none() { [ -z "$(guest_shell train0 "ip -o address show dev $1 scope global")" ]; }

# The file that guest-setup writes for this manager.
manager_file() {
    case $manager in
    networkd) echo /etc/systemd/network/10-vfpass-rail0.network ;;
    netplan-*) echo /etc/netplan/90-vfpass.yaml ;;
    networkmanager) echo /etc/NetworkManager/system-connections/vfpass-rail0.nmconnection ;;
    ifupdown) echo /etc/network/interfaces.d/vfpass ;;
    esac
}

# manager_agrees NAME ADDRESS MTU WHEN
manager_agrees() {
    case $manager in
    networkd | netplan-networkd) networkd_agrees "$@" ;;
    networkmanager | netplan-networkmanager) networkmanager_agrees "$@" ;;
    ifupdown) expect_contains "$4: ifquery shows the interface as up" "$1=" guest_shell train0 "ifquery --state $1" ;;
    esac
    case $manager in netplan-*) netplan_agrees "$@" ;; esac
}

# networkctl shows the prefix length only in newer releases.
networkd_agrees() {
    expect_contains "$4: networkctl shows the interface as configured" "(configured)" guest_shell train0 "networkctl status $1"
    expect_said "the address is shown" "${2%/*}"
    expect_said "the MTU is shown" "MTU: $3"
}

networkmanager_agrees() {
    expect_contains "$4: nmcli shows the interface as connected" "(connected)" guest_shell train0 "nmcli device show $1"
    expect_said "the address is shown" "$2"
    expect_contains "the MTU is shown" "$3" guest_shell train0 "nmcli -g GENERAL.MTU device show $1"
}

netplan_agrees() {
    expect_equal "$4: netplan status shows the address" "$2" "$(guest_shell train0 "netplan status --format json" |
        jq -r --arg name "$1" --arg address "${2%/*}" '.[$name].addresses[] | to_entries[] |
            select(.key == $address) | "\(.key)/\(.value.prefix)"')"
}

# manager_forgot NAME: after --undo the manager has none of our settings for the interface.
manager_forgot() {
    case $manager in
    networkd | netplan-networkd)
        expect_equal "networkctl shows none of our files for $1" "" \
            "$(guest_shell train0 "networkctl status $1" | grep -E 'Network File: .*vfpass')" ;;
    networkmanager | netplan-networkmanager)
        expect_equal "nmcli shows none of our connections for $1" "" \
            "$(guest_shell train0 "nmcli -g GENERAL.CONNECTION device show $1" | grep vfpass)" ;;
    ifupdown) expect_equal "ifquery shows $1 as down" "" "$(guest_shell train0 "ifquery --state $1")" ;;
    esac
    case $manager in
    netplan-*) expect_equal "netplan shows none of our settings for $1" "" \
        "$(guest_shell train0 'netplan get' | grep vfpass)" ;;
    esac
}
