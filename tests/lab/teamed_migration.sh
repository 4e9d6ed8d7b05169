# Migration of a domain with a teamed VF between two hosts: the target's hook gives it the VF that an attach has leased there.
# covers: src/hook src/plan/plan_arrival.cpp tests/lab/teamed.sh lab/lib/link.sh lab/outside/other_hosts.sh tests/lab/two_hosts_common.sh
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

# migrate [ADDRESS]: QEMU connects to the address.
migrate() {
    virsh --quiet migrate a "$target" --migrateuri "tcp://${1:-10.98.0.2}"
}

section "$role host"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 2
start_libvirt
expect "the link to the other host is up" join_link "$number"
[ "$role" = second ] || expect "an ssh key is created" make_ssh_key
expect "hook install" vfpass hook install

team() { mapping a rail0 "$pf" "index: $((number - 1))" "vlan: {id: 1$number}" 'teaming: {with: net0}'; }

if [ "$role" = second ]; then
    hostname second
    # It has the VF that a's mapping names here. Two mappings with one VF would be the refusal otherwise.
    expect "another VM is defined" define_tiny other
    mapping other rail0 "$pf" 'index: 1' 'vlan: {id: 13}'
    expect "attach" vfpass attach other
    rm "$vms/other.yaml"
    team
    serve_first 1800
    expect "the guest has the VF of this host" has_function a "$(vf_of "$pf" 1)"
    expect_contains "it has the VLAN of this host's mapping" "vlan 12" vf_attributes "$netdev" 1
    expect_contains "it has the standby's MAC" "52:54:00:12:34:99" vf_attributes "$netdev" 1
    finish
    exit
fi

reach_second
expect "a is defined" define_teamed a
team
virsh dumpxml --inactive a >/tmp/a.xml
expect "attach" vfpass attach a
expect "a starts" start_paused a
stays() {
    expect "the guest stays" is_active a
    expect "with its VF" has_function a "$(vf_of "$pf" 0)"
    expect_equal "its lease is running" running "$(lease_state a)"
    expect_contains "the VF has its VLAN" "vlan 11" vf_attributes "$netdev" 0
}

section "a target without a lease"
refuse "the migration is refused" migrate
expect_said "the reason is printed" "for which this host has no lease"
expect_said "the remedy is printed" "vfpass attach a"
stays
expect_equal "no lease there" "" "$(state_there a)"

section "a target without a free VF"
expect "a is defined there" there 'cat >/tmp/a.xml && virsh --quiet define /tmp/a.xml' </tmp/a.xml
refuse "attach there is refused" there vfpass attach a
expect_said "it names the VM that has the VF" "leased to domain other"
refuse "the migration is refused" migrate
expect_said "the reason is printed" "for which this host has no lease"
stays
expect_equal "no lease there" "" "$(state_there a)"
expect "the other VM gives the VF back" there vfpass detach other

is_reserved_there() { test "$(state_there a)" = reserved; }
fails() {
    stays
    expect "the guest does not run there" there 'virsh domstate a | grep -q "shut off"'
    expect "the lease there is returned" wait_until 60 is_reserved_there
}

section "a migration that fails after the target was prepared"
expect "attach there" there vfpass attach a
refuse "QEMU does not reach the target" migrate 10.98.0.1
fails

section "a target whose QEMU dies"
# Before it can have the guest's memory: it takes seconds to start.
there 'until pkill -KILL -f "qemu-system.* guest=[a],"; do sleep 0.05; done' &
killer=$!
refuse "the migration fails" migrate
wait "$killer"
expect_equal "QEMU was killed" 0 "$?"
fails

section "a migration"
expect "the guest migrates" migrate
expect "it is off here" wait_until 30 guest_off a
expect_equal "the lease here is returned" reserved "$(lease_state a)"
refuse "the VF here is scrubbed" grep -q "vlan 11" <(vf_attributes "$netdev" 0)
expect_equal "the lease there is running" running "$(state_there a)"
expect "no drift there" there vfpass status a
touch /lab/link/done
finish
