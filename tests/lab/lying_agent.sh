# A guest that lies to vfpass verify over the real channel: whatever it says, verify ends in time, with the
# right exit code, in bounded memory, and nothing of it reaches the terminal.
# covers: src/guest/agent.cpp src/guest/reply.* src/guest/limits.* src/guest/exchange.* src/guest/run_shell.* tests/lab/lying_agent_in_guest
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

export AGENT_TIMEOUT=240
patience=10

# lie MODE: from now on; the request has to wait until an earlier lie about guest-sync has ended.
lie() {
    wait_until 90 virsh qemu-agent-command --timeout 20 train0 \
        "{\"execute\":\"lab-lie\",\"arguments\":{\"mode\":\"$1\"}}"
}

# Address space of half a gigabyte: an answer that makes it grow without bounds ends it otherwise.
verify() { (ulimit -v 524288 && exec vfpass verify train0 --timeout $patience "$@"); }

# caught EXIT MODE NAME [WORDS]: this lie ends so, in time. One call of libvirt's takes up to 10 s more than it
# was asked for, and killing what may still run 15.
# shellcheck disable=SC2154  # last_output is what lib.sh's checks leave
caught() {
    local began=$SECONDS lasted said
    expect "$3: the guest lies" lie "$2"
    expect_exit "$1" "$3" verify
    said=$last_output # the next check has an output of its own
    lasted=$((SECONDS - began))
    expect "$3: it ended in time ($lasted s)" test "$lasted" -lt $((patience + 75))
    expect "$3: it says something" test -n "$said"
    refuse "$3: no terminal code got through" grep -q $'[\x1b\x07]' <<<"$said"
    [ -z "${4:-}" ] || expect_contains "$3: it says what it saw" "$4" cat <<<"$said"
}

# into_guest FILE: standard input becomes a file there.
into_guest() {
    local text
    text=$(base64 -w 0)
    guest_shell train0 "mkdir -p /tmp/liar; echo $text | base64 -d >$1"
}
# told MODE KIND: what the probe is to have said, from standard input.
told() { base64 -w 0 | into_guest "/tmp/liar/$1-$2"; }

section "a guest with a VF"
install_vfpass
load_standin
pf=$(pf_address 0)
make_vfs "$pf" 2
start_libvirt
define_guest train0
mapping train0 rail0 "$pf" 'index: 1'
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 400
mac=$(vf_attributes "$(pf_netdev 0)" 1 | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p')
expect "its MAC is known" test -n "$mac"

section "its agent becomes a liar"
into_guest /tmp/lying_agent <"/vfpass/tests/lab/lying_agent_in_guest"
good_port='"ports": [{"number": 1, "state": "4: ACTIVE", "rate": "100 Gb/sec", "link_layer": "Ethernet",
    "active_mtu": "4096", "gid_index": 0, "gids": [{"index": 0, "gid": "fe80::1", "type": "RoCE v2"}]}]'
inventory() {
    cat <<JSON
{"netdevs": [{"name": "$1", "mac": "$2", "state": "up", "pci": "0000:01:00.0", "driver": "mlx5_core",
    "mtu": 1500}],
 "rdma": {"libibverbs": {"found": true, "detail": ""}, "devices": [{"name": "mlx5_0", "pci": "0000:01:00.0",
    "parent": "", "opens": {"done": true, "detail": ""}, $good_port}]}, "gpus": {}}
JSON
}
checked='"passed": true, "memory": {"initiator": {"kind": "host"}, "target": {"kind": "host"}},
    "owners": {"target": {"bytes_checked": 999999999}}'
for mode in false-pass escapes twice; do
    echo '{"protocol": 1}' | told $mode hello
done
inventory eth1 "$mac" | told false-pass inventory
echo "{\"passed\": true, \"runs\": [{$checked, \"bandwidth\": {\"gigabits_per_second\": 97}}]}" |
    told false-pass loopback
inventory '\u001b[2J\u0007eth1' 02:00:00:00:00:99 | told escapes inventory
echo '{"netdevs": [], "netdevs": []}' | told twice inventory
guest_shell train0 'setsid sh /tmp/lying_agent </dev/null >/dev/null 2>&1 &' >/dev/null 2>&1
expect "it has taken the channel" lie base
took "it"

section "each lie is caught"
caught 6 silent "no answer at all"
caught 6 slow "one byte a second"
caught 6 stale "answers to other questions"
caught 6 no-sync "nothing to synchronize with"
caught 6 garbage "no JSON"
caught 6 deep "100,000 levels"
caught 6 large "10 MiB"
caught 6 duplicate "a member twice in the agent's answer"
caught 6 twice "a member twice in the probe's document" "a member twice"
caught 6 utf8 "bytes that are not UTF-8"
caught 6 terminal "terminal codes in an error"
caught 6 pid "process -1" "cannot be"
caught 6 bad-base64 "what is not base64" "not base64"
caught 6 never-ends "a program that never ends" "too slow"
patience=60
caught 4 escapes "terminal codes in the inventory" '\x1b[2J\x07eth1'
caught 4 false-pass "a pass that nobody saw" "first broken link: rail0: counters"
took "all"

section "an agent that allows no programs"
expect "honest again" lie honest
expect "the guest's own agent is back" wait_until 120 guest_shell train0 true
guest_shell train0 'mkdir -p /etc/qemu; printf "[general]\nblacklist=guest-exec\n" >/etc/qemu/qemu-ga.conf
    (usleep 500000; killall qemu-ga) >/dev/null 2>&1 &'
refused() { virsh qemu-agent-command --timeout 20 train0 '{"execute":"guest-info"}' |
    jq -e '[.return.supported_commands[] | select(.name == "guest-exec")][0].enabled == false'; }
expect "it has read its configuration" wait_until 60 refused
expect_exit 6 "verify" verify
expect_contains "it says what the agent refuses" "does not allow guest-exec" cat <<<"$last_output"
expect_contains "and the remedy for RHEL" "/etc/sysconfig/qemu-ga" cat <<<"$last_output"
expect_contains "and for Debian" "/etc/qemu/qemu-ga.conf" cat <<<"$last_output"
finish
