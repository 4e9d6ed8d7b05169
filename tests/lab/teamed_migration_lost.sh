# A guest that uses its teamed VF is moved, and while its memory is sent the migration is aborted, the link between the hosts is lost, or the
# source's QEMU is killed. Afterwards the source has the guest with its VF, or can start it, and the target neither a guest nor half a lease.
# covers: src/hook src/plan/plan_arrival.cpp src/plan/plan_hook.cpp tests/lab/teamed.sh tests/lab/two_hosts_common.sh lab/lib/link.sh
# covers: lab/outside/other_hosts.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh
# shellcheck source=SCRIPTDIR/teamed.sh
source /vfpass/tests/lab/teamed.sh
# shellcheck source=SCRIPTDIR/two_hosts_common.sh
source /vfpass/tests/lab/two_hosts_common.sh

section "$role host"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 2
expect "the PF is up" ip link set "$netdev" up
start_libvirt
expect "the link to the other host is up" join_link "$number"
expect "hook install" vfpass hook install
mapping a rail0 "$pf" "index: $((number - 1))" "vlan: {id: 1$number}" 'teaming: {with: net0}'
is_reserved() { test "$(lease_state a)" = reserved; }

if [ "$role" = second ]; then
    hostname second
    admit_first
    expect "the link is lost" wait_until 2400 test -e /lab/link/lost
    # The hosts cannot reach each other; libvirt notices that after half a minute (keepalive_interval, keepalive_count).
    expect "the guest that waits here is ended" wait_until 300 guest_off a
    expect "its lease is returned" wait_until 60 is_reserved
    touch /lab/link/ended
    expect "the first host has finished" wait_until 2400 test -e /lab/link/done
    expect "the guest has the VF of this host" has_function a "$(vf_of "$pf" 1)"
    expect_contains "it has the VLAN of this host's mapping" "vlan 12" vf_attributes "$netdev" 1
    expect_contains "it has the standby's MAC" "52:54:00:12:34:99" vf_attributes "$netdev" 1
    finish
fi

expect "an ssh key is created" make_ssh_key
reach_second
link=$(link_netdev)
attach_on_both user
# After a first start the VF's attributes are neutral whenever the guest is off.
expect "a starts there" there virsh --quiet start --paused a
expect "a is ended there" there virsh --quiet destroy a

# shellcheck disable=SC2016  # for the script's shell
write_state_script a 'snapshot_host /tmp/vfs "$(pf_address 0)"; cat /tmp/vfs'
unchanged_here() {
    whole_state_here >/tmp/here.now
    expect_same_file "this host is as before" /tmp/here /tmp/here.now
    expect "the guest has its VF" has_function a "$(vf_of "$pf" 0)"
    expect "it uses it" wait_until 300 has_team 2
}
unchanged_there() {
    expect "the guest is off there" wait_until 60 off_there a
    whole_state_there >/tmp/there.now
    expect_same_file "the other host is as before" /tmp/there /tmp/there.now
}

# begin: begins a migration and waits until memory is sent and the guest has only its twin.
begin() {
    migrate_slowly
    expect "the guest has only its twin" wait_until 300 has_team 1
    expect "its memory is sent" wait_until 60 sent_more a 0
    expect "more of it is sent" wait_until 60 sent_more a "$(sent a)"
    expect_equal "the guest waits there" paused "$(there virsh domstate a | head -n 1)"
    virsh domjobinfo a
}
fails() {
    wait "$migration"
    expect_equal "the migration fails" 1 "$?"
    cat /tmp/migrate
    took "the migration"
}

section "the guest"
start_with_team
expect_contains "its VF has its VLAN" "vlan 11" vf_attributes "$netdev" 0
whole_state_here >/tmp/here
whole_state_there >/tmp/there
expect "the state of this host is complete" grep -q '^\["a","rail0",.*"running"\]' /tmp/here
expect "so is that of the other one" grep -q '^\["a","rail0",.*"reserved"\]' /tmp/there
took "the guest"

section "a migration that is aborted"
begin
expect "domjobabort" virsh --quiet domjobabort a
fails
unchanged_here
unchanged_there

section "a migration during which the link is lost"
begin
expect "the link is cut" ip link set "$link" down
touch /lab/link/lost
# By itself it fails when the source's kernel gives up the connection (net.ipv4.tcp_retries2), after a quarter of an hour.
expect "domjobabort" timeout 120 virsh --quiet domjobabort a
fails
unchanged_here
expect "the guest that waits there is ended" wait_until 300 test -e /lab/link/ended
expect "the link is back" ip link set "$link" up
expect "ssh reaches the second host" wait_until 120 there true
unchanged_there

section "a migration during which the source's QEMU is killed"
begin
expect "QEMU is killed" kill -KILL "$(qemu_of a)"
fails
expect "the guest is off here" wait_until 60 guest_off a
unchanged_there
expect "the lease here is returned" wait_until 60 is_reserved
refuse "the VF here is scrubbed" grep -q "vlan 11" <(vf_attributes "$netdev" 0)
expect "no drift" vfpass status a
expect_equal "nothing to recover" "vfpass: nothing to do: no operation was interrupted" "$(vfpass recover 2>&1)"
start_with_team
unchanged_here

section "a migration"
migrate_fast
expect "the lease here is returned" wait_until 60 is_reserved
expect "no drift there" there vfpass status a
export LIBVIRT_DEFAULT_URI=$target
expect "the guest uses the VF there" wait_until 300 has_team 2
touch /lab/link/done
finish
