# shellcheck shell=bash disable=SC2154
# Sourced by lib.sh: guests with Debian's user space, systemd and one network manager, on a disk that keeps their changes
# until the lab ends. `lab/prepare --guests real` makes the disk images.

real_guest_memory=512

# define_real_guest NAME RELEASE MANAGER [--restricted-agent] [--device FILE]
#
# RELEASE is bookworm or trixie; MANAGER networkd, netplan-networkd, netplan-networkmanager, networkmanager or ifupdown.
# --restricted-agent: the agent blocks the same commands as RHEL's package.
define_real_guest() {
    local name=$1 release=$2 file=/run/lab/$1.define.xml
    make_guest_disk "$name" "$release" && real_guest_xml "$@" >"$file" && virsh --quiet define "$file"
}

make_guest_disk() {
    local base=$lab_build/guests/$2.ext4
    [ -e "$base" ] || { echo "$base: no such file: run lab/prepare --guests real" >&2; return 1; }
    mkdir -p /var/lib/lab
    qemu-img create -q -f qcow2 -b "$base" -F raw "/var/lib/lab/$1.qcow2"
}

# The busybox guest's definition with a different initramfs and command line, and with a disk. It has the kernel's own mlx5_core.
real_guest_xml() {
    local name=$1 manager=$3 options=(--memory "$real_guest_memory") words
    shift 3
    words="systemd.show_status=0 quiet lab.manager=$manager"
    disk_xml "$name" >"/run/lab/$name.disk.xml"
    options+=(--device "/run/lab/$name.disk.xml")
    while [ $# -gt 0 ]; do
        case $1 in
        --restricted-agent) words+=' lab.restricted-agent' ;;
        --device) options+=(--device "$2"); shift ;;
        *) echo "define_real_guest: unknown option $1" >&2; return 2 ;;
        esac
        shift
    done
    guest_xml "$name" "${options[@]}" |
        sed -e "s|/guest\.cpio|/guest-disk.cpio|" -e "s|</cmdline>| $words&|"
}

disk_xml() {
    cat <<XML
<disk type='file' device='disk'>
  <driver name='qemu' type='qcow2' cache='unsafe'/>
  <source file='/var/lib/lab/$1.qcow2'/>
  <target dev='vda' bus='virtio'/>
  <address type='pci' domain='0x0000' bus='0x00' slot='0x04' function='0x0'/>
</disk>
XML
}

# print_guest_versions NAME RELEASE MANAGER: prints the versions of the guest's software for scripts/test-matrix.
print_guest_versions() {
    local packages="systemd qemu-guest-agent"
    case $3 in
    netplan-networkd) packages+=' netplan.io' ;;
    netplan-networkmanager) packages+=' netplan.io network-manager' ;;
    networkmanager) packages+=' network-manager' ;;
    ifupdown) packages+=' ifupdown' ;;
    esac
    printf 'version: guest %s-%s: %s\n' "$2" "$3" "$(guest_shell "$1" "uname -r | sed 's/^/kernel /'
        dpkg-query --show --showformat='\${Package} \${Version}\n' $packages" | paste -sd , | sed 's/,/, /g')"
}

# reboot_count NAME: how often the guest has started its agent.
reboot_count() { grep -ac 'guest: agent' "/var/log/libvirt/qemu/$1-console.log"; }

rebooted() { [ "$(reboot_count "$1")" -gt "$2" ] && agent_answers "$1"; }

# reboot_real_guest NAME SECONDS: reboots through the agent and systemd; returns when the agent answers again.
reboot_real_guest() {
    local before
    before=$(reboot_count "$1")
    # The agent may go down before it answers.
    virsh --quiet reboot "$1" --mode agent || :
    wait_until "$2" rebooted "$1" "$before"
}

# refused_command NAME: prints a restricted agent's error for guest-exec.
refused_command() {
    agent_command "$1" '{"execute":"guest-exec","arguments":{"path":"/bin/true"}}' 2>&1 || :
}
