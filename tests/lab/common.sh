# Sourced by the tests in this directory: functions that they share beyond lab/lib.sh.
# shellcheck shell=bash

# shellcheck source=SCRIPTDIR/../../lab/lib.sh
source "/vfpass/lab/lib.sh"

vms=/etc/vfpass/vms
# A test may run on a terminal, where nobody leaves a pager.
export PAGER=cat

# Installs the programs where a package would.
install_vfpass() {
    install -m 0755 /vfpass/build/sbin/vfpass /vfpass/build/sbin/vfpass-qemu-hook /usr/sbin/
    install -D -m 0755 -t /usr/libexec/vfpass /vfpass/build/libexec/vfpass-probe
    mkdir -p "$vms"
}

# make_vfs PF COUNT: creates VFs as an administrator would, with mlx5_core bound to them.
make_vfs() { echo "$2" >"/sys/bus/pci/devices/$1/sriov_numvfs"; }

# vf_of PF INDEX: the VF's address.
vf_of() { basename "$(readlink "/sys/bus/pci/devices/$1/virtfn$2")"; }

# define_with VM VF [options of guest_xml]: defines a guest with a hostdev that vfpass did not add.
define_with() {
    hostdev_xml "$2" 1 yes >/tmp/hostdev.xml
    define_guest "$1" --device /tmp/hostdev.xml "${@:3}"
}

# settle VM: brings the XML into libvirt's own order, which it has after every restart of the daemon. If
# libvirt adds pcie-root to a definition, it is last at first and moves to the front at the next definition
# (virDomainControllerInsert sorts only what is parsed).
settle() {
    virsh dumpxml --inactive --security-info "$1" >/tmp/settle.xml
    virsh --quiet define /tmp/settle.xml
}

has_lease() { leases | grep -q "\"$1\""; }

no_lease() { test "$(leases)" = ""; }

# mapping VM NAME PF_ADDRESS [LINE...]: writes a mapping with one VF; LINEs are added to its entry.
mapping() {
    local vm=$1 name=$2 pf=$3
    shift 3
    rm -f "$vms/$vm.yaml"
    {
        printf 'version: 1\nvm: %s\nvfs:\n  - name: %s\n    pf: {pci: "%s"}\n' "$vm" "$name" "$pf"
        printf '    %s\n' "$@"
    } >"$vms/$vm.yaml"
}

# switch_mode_policy PF MODE: writes host.yaml.
switch_mode_policy() {
    printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    embedded-switch-mode: %s\n    allow-disruption: true\n' "$@" >/etc/vfpass/host.yaml
}

# vf_attributes NETDEV INDEX: the VF's attributes as iproute2 reads them from the PF's driver. IPoIB reports its own hardware
# address as the VF's, which is not stable: it begins with the number of a queue pair.
vf_attributes() { ip -d link show dev "$1" | sed -n "/vf $2 /{s|link/infiniband [0-9a-f:]* ||;p}"; }

# snapshot_host FILE PF...: writes the state that a round trip has to restore.
snapshot_host() {
    local file=$1 pf vf
    shift
    for pf in "$@"; do
        local device=/sys/bus/pci/devices/$pf
        echo "PF $pf: VFs $(find "$device/" -maxdepth 1 -name 'virtfn*' | wc -l)," \
            "autoprobe $(cat "$device/sriov_drivers_autoprobe")"
        ip -d link show dev "$(ls "$device/net")" | grep -E '^ +vf ' || true
        for vf in "$device"/virtfn*; do
            [ -e "$vf" ] || continue
            vf=$(basename "$(readlink "$vf")")
            echo "VF $vf: driver $(driver_of "$vf")," \
                "override $(cat "/sys/bus/pci/devices/$vf/driver_override")"
        done
    done >"$file"
}

# leases: the leases of the database, one per line, for comparison. Drift (exit code 3) is ignored, because
# a mapping that is not attached is drift too.
leases() {
    { vfpass status --json || test $? = 3; } |
        jq -c '.leases[] | [.domain.name, .entry, .vf, .state]'
}

# in_guest VM MAC: the file that shows the MAC of the guest's netdev. The MAC identifies the function, because the guest's firmware
# numbers buses in the order of the ports, libvirt by the controllers' index.
in_guest() { guest_shell "$1" "grep -l '$2' /sys/bus/pci/devices/*/net/*/address"; }

# guest_drives VM COUNT: whether the guest's driver is bound to so many devices.
guest_drives() { guest_shell "$1" "test \$(ls -d /sys/bus/pci/drivers/mlx5_core/0* | wc -l) -ge $2"; }

# Saves what survives a reboot of the host. The directories are copied, because SQLite's WAL does not work on
# the lab's 9p share.
save_state() { cp -a /var/lib/vfpass "$vms" /etc/vfpass/seal.key /etc/libvirt/qemu /lab/state/; }

restore_state() {
    mkdir -p /etc/vfpass /etc/libvirt/qemu
    cp -a /lab/state/vfpass /var/lib/
    cp -a /lab/state/vms /etc/vfpass/
    install -m 0600 /lab/state/seal.key /etc/vfpass/
    cp -a /lab/state/qemu/. /etc/libvirt/qemu/
}

# attack links|mounts|name DEVICE: a user of the host tries to disturb all others (local_user.py), or runs a program of
# root by the name of vfpass's helper for the device. Sets attacker, the process to kill.
attack() {
    install -m 0644 /vfpass/tests/lab/local_user.py /usr/local/lib/
    install -m 4755 /bin/sleep /usr/local/bin/setuid-sleep
    ln -sf /usr/local/bin/setuid-sleep "/run/vf$2"
    : >/run/attack.ready
    chmod 0666 /run/attack.ready
    local unprivileged=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    if [ "$1" = name ]; then
        "${unprivileged[@]}" "/run/vf$2" 3600 &
    else
        "${unprivileged[@]}" unshare --user --map-root-user --net --mount \
            python3 /usr/local/lib/local_user.py "$1" /run/attack.ready &
    fi
    attacker=$!
    if [ "$1" = name ]; then
        expect "a program of root has the helper's name" wait_until 20 grep -q "^vf$2" "/proc/$attacker/comm"
        expect "it runs as root" grep -qE '^Uid:.65534.0' "/proc/$attacker/status"
    else
        expect "a user has inflated their $1" wait_until 240 grep -q ready /run/attack.ready
    fi
}

end_attack() {
    kill "$attacker"
    wait "$attacker" 2>/dev/null
}
