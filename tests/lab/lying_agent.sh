# A guest that lies to vfpass verify over the real channel: whatever it sends, verify ends in time, with the right
# exit code and bounded memory, and prints no terminal codes. Also another host that never answers.
# covers: src/guest/remote src/base/include/vfpass/base/call_within.hpp src/guest/agent/agent.cpp src/guest/agent/include/vfpass/agent/reply.* src/guest/verify/limits.* src/guest/agent/include/vfpass/agent/probe_program.* src/guest/agent/include/vfpass/agent/guest_scripts.* tests/lab/lying_agent_in_guest
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

export AGENT_TIMEOUT=240
verify_timeout=10

# lie MODE: sets the lie. The request has to wait until an earlier lie about guest-sync has ended.
lie() {
    wait_until 90 virsh qemu-agent-command --timeout 20 train0 \
        "{\"execute\":\"lab-lie\",\"arguments\":{\"mode\":\"$1\"}}"
}

# Limits the address space to 512 MiB, so that unbounded growth makes verify fail. The transfers are small: under double emulation
# ordinary packets cannot pretend to be many bytes.
verify() { (ulimit -v 524288 && exec vfpass verify train0 --timeout $verify_timeout --bytes 4K --iterations 16 "$@"); }

# caught EXIT MODE NAME [WORDS]: with this lie, verify ends with EXIT and in time. A libvirt call may take 10 s more
# than its timeout, and killing a remaining process 15 s.
# shellcheck disable=SC2154  # last_output is what lib.sh's checks leave
caught() {
    local began=$SECONDS lasted said
    expect "$3: the guest lies" lie "$2"
    expect_exit "$1" "$3" verify
    said=$last_output # the next check has an output of its own
    lasted=$((SECONDS - began))
    expect "$3: verify ends in time ($lasted s)" test "$lasted" -lt $((verify_timeout + 75))
    expect "$3: verify prints an error" test -n "$said"
    refuse "$3: no terminal code is printed" grep -q $'[\x1b\x07]' <<<"$said"
    [ -z "${4:-}" ] || expect_contains "$3: the error describes the lie" "$4" cat <<<"$said"
}

# into_guest FILE: copies standard input to a file in the guest.
into_guest() {
    local text
    text=$(base64 -w 0)
    guest_shell train0 "mkdir -p /tmp/liar; echo $text | base64 -d >$1"
}
# fake_output MODE KIND: sets the probe's faked output for KIND from standard input.
fake_output() { base64 -w 0 | into_guest "/tmp/liar/$1-$2"; }

section "a guest with a VF"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 2
start_libvirt
define_guest train0
mapping train0 rail0 "$pf" 'index: 1'
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 400
mac=$(vf_attribute 0 1 address)
expect "the guest's driver is bound to the VF, which has the leased MAC" wait_until 120 in_guest train0 "$mac"
# shellcheck disable=SC2016  # the guest's shell expands it
link_is_up() {
    guest_shell train0 'cd /sys/bus/pci/drivers/mlx5_core/0*/net && ip link set "$(ls)" up && grep -qx up */operstate'
}
ip link set dev "$(pf_netdev 0)" up
expect "the VF has a link" wait_until 60 link_is_up

# stopped NAME COMMAND...: started in the background, COMMAND waits for 30 s or more; the first SIGTERM ends it before that.
stopped() {
    local name=$1 began process
    shift
    "$@" >/tmp/stopped 2>&1 &
    process=$!
    expect "$name: it waits" wait_until 60 waits "$process"
    began=$SECONDS
    kill -TERM "$process"
    wait "$process"
    expect_equal "$name: the first SIGTERM ends it" 143 $?
    expect "$name: it ends at once ($((SECONDS - began)) s)" test $((SECONDS - began)) -lt 25
}
# While a call into libvirt waits, it has a thread of its own.
waits() { test "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" -gt 1; }

section "another host that never answers"
mkdir -p /tmp/mute
cat >/tmp/mute/ssh <<'SCRIPT'
#!/bin/sh
trap '' TERM INT HUP
echo $$ >>/tmp/mute/pids
echo "$*" >>/tmp/mute/words
while :; do sleep 1; done
SCRIPT
chmod +x /tmp/mute/ssh
with_mute_ssh() { PATH=/tmp/mute:$PATH exec vfpass verify train0 --peer host2:train1 --timeout 30; }
ssh_remains() {
    local pid
    while read -r pid; do
        kill -0 "$pid" 2>/dev/null && return 0
    done </tmp/mute/pids
    return 1
}
began=$SECONDS
expect_exit 1 "verify ends" with_mute_ssh
expect_contains "the reason is the missing reply" "no reply within" cat <<<"$last_output"
expect "it ends in time ($((SECONDS - began)) s)" test $((SECONDS - began)) -lt $((30 + 75))
refuse "no ssh remains" ssh_remains
stopped "verify --peer" with_mute_ssh
refuse "no ssh remains after the signal" ssh_remains
refuse "no temporary file remains" compgen -G '/tmp/vfpass-peer-*'
expect_contains "ssh forwards no agent" "ForwardAgent=no" cat /tmp/mute/words

section "replacing the guest's agent"
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
    "owners": {"target": {"bytes_checked": 65536}}'
for mode in false-pass flood escapes twice; do
    echo '{"protocol": 1}' | fake_output $mode hello
done
for mode in false-pass flood; do
    inventory eth1 "$mac" | fake_output $mode inventory
    echo "{\"passed\": true, \"runs\": [{$checked, \"bandwidth\": {\"gigabits_per_second\": 97}}]}" |
        fake_output $mode loopback
done
inventory '\u001b[2J\u0007eth1' 02:00:00:00:00:99 | fake_output escapes inventory
echo '{"netdevs": [], "netdevs": []}' | fake_output twice inventory
guest_shell train0 'setsid sh /tmp/lying_agent </dev/null >/dev/null 2>&1 &' >/dev/null 2>&1
expect "the lying agent answers on the channel" lie base
took "the section"

section "lies"
caught 6 silent "no answer at all"
caught 6 slow "one byte a second"
caught 6 stale "answers to earlier requests"
caught 6 no-sync "no answer to guest-sync"
caught 6 garbage "invalid JSON"
caught 6 deep "JSON nested 100,000 levels deep"
caught 6 large "an answer of 10 MiB"
caught 6 duplicate "a duplicate member in the agent's answer"
caught 6 twice "a duplicate member in the probe's document" "a duplicate member"
caught 6 utf8 "bytes that are not UTF-8"
caught 6 terminal "terminal codes in an error"
caught 6 pid "process ID -1" "invalid process ID"
caught 6 bad-base64 "invalid base64" "not base64"
caught 6 never-ends "a program that never ends" "timed out"
expect "the guest is silent" lie silent
stopped "verify of a silent guest" vfpass verify train0 --timeout 240
verify_timeout=60
caught 4 escapes "terminal codes in the inventory" '\x1b[2J\x07eth1'
caught 4 false-pass "a pass that the PF's counters contradict" "first problem: rail0: counters"
took "the whole section"

section "a guest that floods its VF with ordinary packets and claims RDMA"
expect "the guest lies, and sends" lie flood
# The counters cannot tell its packets from RDMA (docs/verify.md, "Observers"), so the report has to say what rests on the
# guest. This liar fakes no latencies, so the result as a whole is "not observable".
expect_exit 6 "verify" verify --json
flooded=$(sed -n '/^{/,$p' <<<"$last_output")
contradicted() { jq -r '[.findings[] | select(.key == "data-host" or .key == "counters") |
    select(.entry == "rail0") | "\(.key) \(.result) \(.observer)"] | unique | join(", ")'; }
expect_equal "the counters do not contradict it, and only they count as seen by the host" \
    "counters passed host, data-host passed guest" "$(contradicted <<<"$flooded")"
expect "the guest lies, and sends nothing" lie false-pass
expect_exit 4 "verify without the flood" verify
expect_contains "the counters contradict it again" "first problem: rail0: counters" cat <<<"$last_output"
took "the section"

section "an agent that blocks guest-exec"
expect "the lying agent ends" lie honest
expect "the guest's own agent answers again" wait_until 120 guest_shell train0 true
guest_shell train0 'mkdir -p /etc/qemu; printf "[general]\nblacklist=guest-exec\n" >/etc/qemu/qemu-ga.conf'
# The guest's init starts it again. Its own reply may be lost.
agent_command train0 '{"execute":"guest-exec","arguments":{"path":"/bin/sh","arg":["-c","killall qemu-ga"]}}' >/dev/null 2>&1
refused() { virsh qemu-agent-command --timeout 20 train0 '{"execute":"guest-info"}' |
    jq -e '[.return.supported_commands[] | select(.name == "guest-exec")][0].enabled == false'; }
expect "the agent has read its configuration" wait_until 60 refused
expect_exit 6 "verify" verify
expect_contains "the error names the blocked command" "does not allow guest-exec" cat <<<"$last_output"
expect_contains "the remedy names RHEL's file" "/etc/sysconfig/qemu-ga" cat <<<"$last_output"
expect_contains "the remedy names Debian's file" "/etc/qemu/qemu-ga.conf" cat <<<"$last_output"
finish
