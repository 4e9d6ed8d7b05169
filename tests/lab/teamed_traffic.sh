# Traffic of a guest while it moves to another host with a teamed VF: it sends through its failover interface all the time, while the VF is
# unplugged, its virtio twin carries the packets, the guest moves, and the target's VF is plugged. The peer is the second host, whose bridge
# has the twin's network and the PF as ports, so that each packet shows the path on which it came.
# covers: src/hook src/plan/plan_arrival.cpp lab/lib/link.sh lab/outside/other_hosts.sh lab/image/make-guest-initramfs tests/lab/numbered_traffic.py
# covers: tests/lab/two_hosts_common.sh
# shellcheck shell=bash disable=SC2154  # last_output is what capture leaves
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
modprobe tun
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 1
expect "the PF is up" ip link set "$netdev" up
start_libvirt
expect "the link to the other host is up" join_link "$number"
expect "hook install" vfpass hook install
mapping a rail0 "$pf" 'teaming: {with: net0}'

if [ "$role" = second ]; then
    hostname second
    # The card sends a VF's frames to the PF only if they are for its MAC; promiscuous, it gets what comes by the wire.
    expect "the bridge has the PF's MAC" ip link set link0 address "$(cat "/sys/class/net/$netdev/address")"
    expect "the PF is a port of the bridge" ip link set "$netdev" mtu 9000 master link0
    mkdir /tmp/heard
    python3 /vfpass/tests/lab/numbered_traffic.py hear 10.98.0.50 7000 /tmp/heard >/tmp/heard/log 2>&1 &
    expect "the peer listens" wait_until 60 grep -q ':1B58 .* 0A ' /proc/net/tcp
    echo "$netdev $(link_netdev)" >/lab/link/ports
    serve_first 1800
    expect "the guest has the VF of this host" has_function a "$(vf_of "$pf" 0)"
    expect_contains "the VF has the standby's MAC" "52:54:00:12:34:99" vf_attributes "$netdev" 0
    expect_equal "the peer has no complaint" "" "$(cat /tmp/heard/log)"
    finish
fi

expect "an ssh key is created" make_ssh_key
reach_second
read -r card link </lab/link/ports
attach_on_both bridge "<source bridge='link0'/>"

# came_by NETDEV: the last ping that the peer has heard.
came_by() { there 'tail -n 1 /tmp/heard/pings' | grep -q " $1\$"; }
stream_length() { there 'wc -l </tmp/heard/stream'; }
stream_exceeds() { test "$(stream_length)" -gt "$1"; }
stream_goes_on() { stream_exceeds "$(($(stream_length) + 3))"; }

section "a guest that uses its VF"
start_with_team
took "the guest"
# shellcheck disable=SC2016  # the guest's shell expands it
expect "it sends pings and a stream of numbers" guest_shell a 'master=$(ls -d /sys/class/net/*/lower_* | head -n 1)
    master=$(basename "${master%/lower_*}")
    ip addr add 10.98.0.50/24 dev $master && ip link set $master up || exit
    ping -i 0.2 10.98.0.2 >/tmp/pings 2>&1 </dev/null &
    (while echo $((number += 1)); do sleep 1; done) 2>/dev/null </dev/null | nc 10.98.0.2 7000 >/tmp/nc 2>&1 &'
expect "the pings come by the card" wait_until 120 came_by "$card"
expect "the stream arrives" wait_until 60 stream_exceeds 3

section "a migration that fails after the VF was unplugged"
migrate_slowly
expect "the pings come by the twin" wait_until 300 came_by "$link"
expect "the guest has only its twin" wait_until 60 has_team 1
expect "the guest's QEMU there is killed" there 'pkill -KILL -f "qemu-system.* guest=[a],"'
wait "$migration"
expect_equal "the migration fails" 1 "$?"
expect "the guest stays" guest_running a
expect "the pings come by the card again" wait_until 300 came_by "$card"
expect "the guest has its team again" wait_until 60 has_team 2
expect_equal "its lease is running" running "$(lease_state a)"
is_reserved_there() { test "$(state_there a)" = reserved; }
expect "the lease there is returned" wait_until 60 is_reserved_there
took "the section"

section "a migration"
migrate_fast
took "the migration"
expect_equal "the lease here is returned" reserved "$(lease_state a)"
expect_equal "the lease there is running" running "$(state_there a)"
expect "no drift there" there vfpass status a
expect "the pings come by the card" wait_until 300 came_by "$card"
expect "the stream goes on" wait_until 300 stream_goes_on
export LIBVIRT_DEFAULT_URI=$target
expect "the guest has its team" has_team 2
took "the section"

section "what has arrived"
guest_shell a 'killall -INT ping; sleep 1; cat /tmp/pings' >/tmp/pings
tail -n 4 /tmp/pings
there 'cat >/tmp/pings' </tmp/pings
capture there "python3 /vfpass/tests/lab/numbered_traffic.py report /tmp/heard /tmp/pings card=$card link=$link"
printf '%s\n' "$last_output"
expect_said "each VF was used, and between them only the twin" "paths: card link card link tap card"$'\n'
expect_said "pings were answered on every path" "answered on: card link tap"$'\n'
expect_said "the connection has lost nothing" "stream: whole, "
# shellcheck disable=SC2016
expect_equal "the guest has no complaint" "" "$(guest_shell a 'cat /tmp/nc; dmesg | grep -E "mlx5.*(timeout|failed|error)|WARNING:|BUG:"')"
touch /lab/link/done
finish
