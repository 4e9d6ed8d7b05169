# `migration: vfio` on two hosts in switchdev mode: `vfpass attach` on both, the hook on both, and libvirt moves the running guest with its VF to
# another VF on the other host, and back. A target without a fitting lease is refused before anything moves. A migration that fails, because it is
# aborted or because the target's QEMU dies after the VF was suspended, leaves one guest with its VF. All the time the guest sends pings over
# the wire to a VF of the second host; rules of tc join the VFs' representors with the wire on each host.
# covers: src/hook src/plan/plan_arrival.cpp src/plan/plan_hook.cpp lab/connectx lab/machines/connectx-migration lab/lib/connectx.sh lab/lib/link.sh
# covers: lab/outside/other_hosts.sh tests/lab/two_hosts_common.sh tests/lab/teamed.sh
# shellcheck shell=bash disable=SC2154  # last_code is what expect leaves
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh
# shellcheck source=SCRIPTDIR/teamed.sh
source /vfpass/tests/lab/teamed.sh
# shellcheck source=SCRIPTDIR/two_hosts_common.sh
source /vfpass/tests/lab/two_hosts_common.sh

# The guest has VF 0 of the first host and VF 1 of the second, whose VF 0 is the peer.
map_guest() { mapping g rail0 "$pf" "index: $((number - 1))" 'migration: vfio'; }
join_all() { join_netdevs "$netdev" "$(representor_of "$pf" 0)" "$(representor_of "$pf" 1)"; }
is_reserved() { test "$(lease_state g)" = reserved; }
# as_at_first: whether this host's VFs are as before the first attach.
as_at_first() {
    vf_states "$pf" >/tmp/vfs.now
    expect "no lease is left" no_lease
    expect_same_file "the VFs are as at first" /tmp/vfs.first /tmp/vfs.now
    expect_equal "the kernel has no complaint" "" "$(complaints)"
    expect_equal "the card knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf0.log)"
}

section "$role host: switchdev mode"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
echo 0 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
expect "the PF is up" ip link set "$netdev" up
expect "2 VFs are created" make_vfs "$pf" 2
start_libvirt
expect "the link to the other host is up" join_link "$number"
switch_mode_policy "$pf" switchdev
expect "host apply" vfpass host apply
expect "each VF has a representor" wait_until 30 representors_are "pf0vf0 pf0vf1"
require "representors and wire are joined" join_all
expect "hook install" vfpass hook install
took "the section"

if [ "$role" = second ]; then
    hostname second
    expect "the peer's VF is bound to mlx5_core" bind_to "$(vf_of "$pf" 0)" mlx5_core
    expect "it is in a namespace" put_in_namespace "$pf" 0
    name_vf 0
    expect "it has an address" in_vf 0 "ip addr add 192.0.2.1/24 dev ${vf_netdev[0]}"
    vf_states "$pf" >/tmp/vfs.first
    expect "another VM is defined" define_tiny other
    mapping other rail0 "$pf" 'index: 1' 'migration: vfio'
    require "it has the VF" vfpass attach other
    rm "$vms/other.yaml"
    map_guest
    serve_first 2200
    as_at_first
    finish
fi

# map_there LINE...: writes the mapping of the second host, with these lines in its entry.
map_there() {
    vms=/tmp/there mapping g rail0 "$pf" 'index: 1' "$@"
    there "cat >$vms/g.yaml" </tmp/there/g.yaml
}
migrate() { timeout 900 virsh --quiet migrate --live g "$target" --migrateuri tcp://10.98.0.2; }
# The way back is not peer to peer: the second host cannot log in here.
migrate_back() { timeout 900 virsh --quiet --connect "$target" migrate --live g qemu:///system --migrateuri tcp://10.98.0.1; }
# permit_long_stop: all of the memory counts as changed until the guest is stopped, so the stop may be as long as it takes.
permit_long_stop() { expect "the guest may be stopped for minutes" virsh --quiet migrate-setmaxdowntime g 600000; }
pings() { guest_shell g 'grep -c seq= /tmp/pings'; }
pings_exceed() { test "$(pings)" -gt "$1"; }
reaches_peer() { expect "its pings reach the peer" wait_until 120 pings_exceed "$(($(pings) + 2))"; }
mac_of() { port_function "$pf" "$1" | jq -r .hw_addr; }
stays() {
    expect "the guest runs here" guest_running g
    expect "with its VF" has_function g "$(vf_of "$pf" 0)"
    expect_equal "its lease is running" running "$(lease_state g)"
}

expect "an ssh key is created" make_ssh_key
reach_second
vf_states "$pf" >/tmp/vfs.first
mkdir /tmp/there
guest_xml g | permit_migration ua-vfpass-rail0 >/tmp/g.xml
expect "the guest is defined" virsh --quiet define /tmp/g.xml
settle g
virsh dumpxml --inactive --security-info g >/tmp/g.xml
map_guest
expect "attach" vfpass attach g
expect "the guest starts" virsh --quiet start g
expect "its agent answers" wait_for_agent g 300
# shellcheck disable=SC2016  # for the guest's shell
expect "its VF has an address" guest_shell g 'd=$(ls /sys/class/net | grep -vx lo | head -n 1); ip addr add 192.0.2.2/24 dev $d && ip link set $d up
    ping 192.0.2.1 >/tmp/pings 2>&1 </dev/null &'
require "its pings reach the peer over the wire" wait_until 120 pings_exceed 2
mac=$(mac_of 0)
took "the guest"

section "a target without a lease"
refuse "the migration is refused" migrate
expect_said "the reason is printed" "for which this host has no lease"
expect_said "the remedy is printed" "vfpass attach g"
stays
expect_equal "no lease there" "" "$(state_there g)"
took "the section"

section "a target without a free VF"
expect "g is defined there" there 'cat >/tmp/g.xml && virsh --quiet define /tmp/g.xml' </tmp/g.xml
refuse "attach there is refused" there vfpass attach g
expect_said "it names the VM that has the VF" "leased to domain other"
refuse "the migration is refused" migrate
expect_said "the reason is printed" "for which this host has no lease"
stays
expect_equal "no lease there" "" "$(state_there g)"
expect "the other VM gives the VF back" there vfpass detach other
took "the section"

section "a target whose lease does not fit"
map_there
expect "attach there without migration" there vfpass attach g
refuse "the migration is refused" migrate
expect_said "it names what the lease lacks" "only a VF with \`teaming:\` or \`migration: vfio\` can be replaced"
map_there 'migration: vfio' 'mac: "52:54:00:00:00:99"'
expect "attach there with another MAC" there vfpass attach g
refuse "the migration is refused" migrate
expect_said "it names the MAC" "its lease on this host differs in what the guest would notice: mac"
stays
expect_equal "the lease there is not in use" reserved "$(state_there g)"
# A lease keeps its MAC as long as the mapping has `mac: auto`.
expect "detach there" there vfpass detach g
took "the section"

section "both hosts before a migration"
map_there 'migration: vfio'
expect "attach there" there vfpass attach g
# After a first start the VF's attributes are neutral whenever the guest is off.
expect "g starts there" there virsh --quiet start --paused g
expect "g is ended there" there virsh --quiet destroy g
expect "its lease is returned" wait_until 60 off_there g
# shellcheck disable=SC2016  # for the script's shell
write_state_script g 'vf_states "$(pf_address 0)"'
whole_state_here >/tmp/here
whole_state_there >/tmp/there.state
expect "the state of this host is complete" grep -q '^\["g","rail0",.*"running"\]' /tmp/here
expect "so is that of the other one" grep -q '^\["g","rail0",.*"reserved"\]' /tmp/there.state
expect "which has a VF for migration" grep -q "^VF $(vf_of "$pf" 1): driver mlx5_vfio_pci,.*\"migratable\":\"enable\"" /tmp/there.state
took "the section"

# fails: the migration in the background fails, and both hosts are as before.
fails() {
    wait "$migration"
    expect_equal "the migration fails" 1 "$?"
    cat /tmp/migrate
    stays
    whole_state_here >/tmp/here.now
    expect_same_file "this host is as before" /tmp/here /tmp/here.now
    expect "the guest is off there" wait_until 60 off_there g
    whole_state_there >/tmp/there.now
    expect_same_file "the other host is as before" /tmp/there.state /tmp/there.now
    reaches_peer
    took "the section"
}

section "a migration that is aborted"
expect "the migration is slow" virsh --quiet migrate-setspeed g 1
migrate >/tmp/migrate 2>&1 &
migration=$!
sent_or_ended() { sent_more g "$1" || ! kill -0 "$migration"; }
# memory_is_sent BYTES: more than that. Prints the reason of a migration that has ended.
memory_is_sent() { wait_until 300 sent_or_ended "$1"; cat /tmp/migrate; sent_more g "$1"; }
expect "its memory is sent" memory_is_sent 0
expect "more of it is sent" memory_is_sent "$(sent g)"
expect_equal "the guest waits there" paused "$(there virsh domstate g | head -n 1)"
expect "its pings reach the peer meanwhile" wait_until 120 pings_exceed "$(($(pings) + 2))"
expect "domjobabort" virsh --quiet domjobabort g
fails

section "a target whose QEMU dies after the VF was suspended"
suspensions() { grep -c ' SUSPEND_VHCA ok' /lab/control/pf0.log; }
suspended=$(suspensions)
suspensions_exceed() { test "$(suspensions)" -gt "$1"; }
expect "the memory is sent as fast as it can be" virsh --quiet migrate-setspeed g 10000
permit_long_stop
there 'until test -e /lab/link/suspended; do sleep 0.05; done; pkill -KILL -f "qemu-system.* guest=[g],"' &
killer=$!
migrate >/tmp/migrate 2>&1 &
migration=$!
expect "the VF is suspended" wait_until 300 suspensions_exceed "$suspended"
touch /lab/link/suspended
wait "$killer"
expect_equal "QEMU was killed" 0 "$?"
fails

section "a migration"
permit_long_stop
saved=$(moved 1 saved)
expect "the guest migrates" migrate
took "the migration"
expect "it is off here" wait_until 30 guest_off g
expect "the lease here is returned" wait_until 60 is_reserved
expect_equal "the VF's state was saved once more" "$((saved + 1))" "$(moved 1 saved)"
expect_equal "the VF here is still for migration" "mlx5_vfio_pci enable" "$(driver_of "$(vf_of "$pf" 0)") $(migratable "$pf" 0)"
refuse "it has the guest's MAC no more" test "$(mac_of 0)" = "$mac"
expect_equal "the lease there is running" running "$(state_there g)"
expect "no drift there" there vfpass status g
export LIBVIRT_DEFAULT_URI=$target
expect "the guest runs there" guest_running g
expect "with the VF of that host" has_function g "$(vf_of "$pf" 1)"
reaches_peer
# shellcheck disable=SC2016
expect_equal "its VF has the same MAC" "$mac" "$(guest_shell g 'cat /sys/class/net/e*/address')"
took "the section"

section "the way back"
permit_long_stop
expect "the guest migrates back" migrate_back
took "the migration"
export LIBVIRT_DEFAULT_URI=qemu:///system
stays
expect_equal "the card has loaded the VF's state" 1 "$(moved 1 loaded)"
expect "the guest is off there" wait_until 60 off_there g
reaches_peer
# shellcheck disable=SC2016
expect_equal "its VF's driver has no complaint" "" "$(guest_shell g 'dmesg | grep -E "mlx5.*(timeout|failed|error|[Ww]arn)|WARNING:|BUG:"')"
expect "no drift" vfpass status g
took "the section"

section "detach"
expect "the guest is off" shut_down_guest g 300
expect "the lease is reserved" wait_until 120 is_reserved
expect "detach" vfpass detach g
expect "detach there" there vfpass detach g
as_at_first
touch /lab/link/done
finish
