# A member of the group that may read the state locks everything that they can open. Attach, start, stop and detach
# succeed all the same.
# covers: src/state src/hook packaging/tmpfiles.conf tests/lab/hold_locks.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

state=/var/lib/vfpass run=/run/vfpass group=65534
# Which daemon was reloaded, for doctor. No command locks it.
reloaded=$run/hook-reloaded

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
start_libvirt
vfpass hook install
define_guest train0
settle train0
# As tmpfiles.conf says.
install -d -m 2750 -o root -g "$group" "$state"
install -d -m 0750 -o root -g "$group" "$run"

as_member() { setpriv --reuid 65533 --regid "$group" --clear-groups "$@"; }

# locks TITLE FILE...: a member locks all that they can open, which are these files.
locks() {
    local title=$1 files
    shift
    mapfile -t files < <(find "$state" "$run")
    as_member /vfpass/build/tests/lab/hold-locks "${files[@]}" >/tmp/locked 2>&1 &
    member=$!
    expect "$title: the member has locked what they can open" wait_until 30 grep -qx ready /tmp/locked
    expect_equal "$title: that is nothing that root locks" "$(printf '%s\n' "$@" | sort)" "$(grep -vx ready /tmp/locked | sort)"
}
unlocks() { kill "$member" && wait "$member"; }

started_and_stopped() {
    expect "$1: start" virsh start train0
    expect_contains "$1: the VLAN is set" "vlan 100" vf_attributes "$netdev" 1
    virsh destroy train0 >/dev/null
    expect "$1: the VF is released" wait_until 20 eval 'leases | grep -q reserved && ! leases | grep -q running'
}

section "before the database exists"
snapshot_host /tmp/host.before "$pf"
mapping train0 rail0 "$pf" 'index: 1' 'vlan: {id: 100}'
locks "before" "$state" "$run" "$reloaded"
expect "attach" vfpass attach train0
started_and_stopped "first locks"
expect "a member reads the lease in the copy" as_member grep -qa rail0 "$state/vfpass-readable.db"
expect_exit 1 "a member cannot open the database" as_member head -c 1 "$state/vfpass.db"

section "with a database that an earlier version left open to the group"
unlocks
chmod 0640 "$state/vfpass.db"
started_and_stopped "an earlier version's file"
expect_equal "no other file of root is open to others" "$(printf '%s\n' "$reloaded" "$state/vfpass-readable.db")" \
    "$(find "$state" "$run" -type f -perm /077 | sort)"
locks "afterwards" "$state" "$run" "$reloaded" "$state/vfpass-readable.db"
started_and_stopped "second locks"
expect "status" vfpass status train0
expect "detach" vfpass detach train0
expect "no lease" no_lease
unlocks
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after
finish
