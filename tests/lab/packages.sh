# The Debian packages on a host with running VMs: installation, upgrade, also with the state and the metadata of an earlier version,
# removal, installing again, purge. The argument is the
# directory of the packages (default: what `lab/prepare --packages deb` made).
# covers: packaging cmake src/hook/install src/hook src/state/schema.cpp src/domain/metadata_version_1.cpp tests/lab/older_state.py
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

packages=${1:-$lab_build/packages}
link=/etc/libvirt/hooks/qemu.d/vfpass

# newer: prints the path of the package with a higher version, made from the original.
newer() {
    rm -rf /tmp/newer
    dpkg-deb --raw-extract "$packages"/vfpass_*.deb /tmp/newer
    sed -i 's/^Version: .*/Version: 9.0-1/; s/vfpass-guest (= [^)]*)/vfpass-guest/' /tmp/newer/DEBIAN/control
    dpkg-deb --root-owner-group -Znone --build /tmp/newer /tmp/newer.deb >/dev/null
    echo /tmp/newer.deb
}
# format_of_database: its number, read without vfpass, which would migrate it.
format_of_database() {
    python3 -c 'import sqlite3
print(sqlite3.connect("file:/var/lib/vfpass/vfpass.db?mode=ro", uri=True).execute("PRAGMA user_version").fetchone()[0])'
}
# xml_of SCOPE...: the VM as libvirt has it.
xml_of() { virsh dumpxml --security-info a "$@"; }
daemon_is_the_same() { test "$(libvirt_pid)" = "$daemon_pid"; }
guests_run() {
    expect "$1: the managed VM runs" is_active a
    expect "$1: it holds its VF" holds_vf a
    expect "$1: its QEMU is the same" test "$(qemu_of a)" = "$qemu"
    expect_contains "$1: its VF has its VLAN" "vlan 11" vf_attributes "$netdev" 1
    expect "$1: the other VM runs" is_active plain
    expect "$1: libvirt was not restarted" daemon_is_the_same
    expect_same_file "$1: the administrator's hook is unchanged" /tmp/own.before /etc/libvirt/hooks/qemu
}

section "installation on a host without any hook"
start_libvirt
daemon_pid=$(libvirt_pid)
expect "dpkg --install" dpkg --install "$packages"/vfpass_*.deb "$packages"/vfpass-guest_*.deb
expect_said "libvirt was reloaded" "reloaded $libvirt_daemon"
expect "libvirt was not restarted" daemon_is_the_same
expect_equal "the hook is installed" /usr/sbin/vfpass-qemu-hook "$(readlink "$link")"
expect_equal "the group may read the state" "root:vfpass 2750" "$(stat -c '%U:%G %a' /var/lib/vfpass)"
printf '#!/bin/sh\nexit 0\n' >/etc/libvirt/hooks/qemu
chmod 755 /etc/libvirt/hooks/qemu
cp /etc/libvirt/hooks/qemu /tmp/own.before

section "a managed VM and another one"
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
for vm in a plain; do define_tiny "$vm"; done
xml_of --inactive >/tmp/a.unattached
mapping a rail0 "$pf" 'index: 1' 'vlan: {id: 11}'
expect "attach" vfpass attach a
expect "start" start_paused a
expect "start of the other VM" start_paused plain
qemu=$(qemu_of a)
guests_run "before the upgrade"

section "upgrade while they run, from a version with earlier formats"
leases >/tmp/leases.before
expect_equal "state and metadata are as an earlier version wrote them" "database 2 metadata 1" \
    "$(python3 -B /vfpass/tests/lab/older_state.py a)"
xml_of >/tmp/a.live
xml_of --inactive >/tmp/a.inactive
expect "dpkg --install of a newer version" dpkg --install "$(newer)"
guests_run "after the upgrade"
expect_equal "the hook is still the link" /usr/sbin/vfpass-qemu-hook "$(readlink "$link")"
expect_equal "the upgrade does not migrate the database" 2 "$(format_of_database)"
expect "status" vfpass status
leases >/tmp/leases.after
expect_same_file "the leases are the same" /tmp/leases.before /tmp/leases.after
expect "plan finds the metadata valid" vfpass plan a
expect_said "nothing would change" "nothing to do"
expect "recover" vfpass recover
expect "gc" vfpass gc
leases >/tmp/leases.after
expect_same_file "recover and gc keep the leases" /tmp/leases.before /tmp/leases.after
xml_of >/tmp/a.now
expect_same_file "the running domain is unchanged" /tmp/a.live /tmp/a.now
xml_of --inactive >/tmp/a.now
expect_same_file "its configuration is unchanged" /tmp/a.inactive /tmp/a.now
guests_run "after recover"

section "removal while they run"
expect "dpkg --remove" dpkg --remove vfpass
expect_said "it names the VM" "        a"
guests_run "after the removal"
restart_libvirt
daemon_pid=$(libvirt_pid)
guests_run "after a restart of libvirt"
stop_hard a
expect_exit 1 "the managed VM does not start" start_paused a
expect_said "libvirt prints the reason" "the package vfpass was removed"
stop_hard plain
expect "the other VM starts" start_paused plain
expect_exit 1 "purge is refused" dpkg --purge vfpass
expect_said "it names the VM and the command" "vfpass detach VM"
expect_exit 1 "the managed VM still does not start" start_paused a

section "installing again"
expect "dpkg --install" dpkg --install "$packages"/vfpass_*.deb
expect "the managed VM starts" start_paused a
qemu=$(qemu_of a)
guests_run "after installing again"
expect_equal "the start, which wrote to it, has migrated the database" 5 "$(format_of_database)"

section "detach, then purge"
stop_hard a
expect_contains "its metadata is still that of the earlier version" ' version="1"' virsh metadata a https://vfpass.org/xmlns/domain/1 --config
expect "detach" vfpass detach a
xml_of --inactive >/tmp/a.now
expect_same_file "the configuration is that before attach" /tmp/a.unattached /tmp/a.now
expect "dpkg --purge" dpkg --purge vfpass vfpass-guest
refuse "the hook is gone" test -e "$link"
refuse "the state is gone" test -e /var/lib/vfpass
expect "the mapping stays" test -e "$vms/a.yaml"
expect "the VM starts without vfpass" start_paused a
expect "the administrator's hook remains" test -x /etc/libvirt/hooks/qemu
finish
