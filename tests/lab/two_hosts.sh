# vfpass verify --peer with a VM of another host: two hosts under test, each with a guest of the same name that has a VF. A wire
# joins the hosts' cards; ssh has a link of its own.
# covers: src/guest/remote src/commands/verify_with_peer.cpp src/commands/verification* src/guest/verify/*pair* src/guest/verify/party.* src/guest/verify/verify_path.* src/guest/verify/verify_guest.cpp src/commands/observe_command.cpp
# covers: tests/lab/verify_common.sh lab/lib/link.sh lab/outside/other_hosts.sh lab/connectx tests/lab/two_hosts_common.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh
# shellcheck source=SCRIPTDIR/two_hosts_common.sh
source /vfpass/tests/lab/two_hosts_common.sh

# Each pass costs messages through both agents, and each message a packet and its answer between the hosts' emulators.
small=(--bytes 512 --iterations 500 --relaxed-ordering off)
verify_json() {
    vfpass verify train0 --json --timeout 1500 "${small[@]}" "$@" 2>/tmp/verify.log
}

section "$role host: a guest with a VF"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
start_libvirt
expect "the link to the other host is up" join_link "$number"
[ "$role" = second ] || expect "an ssh key is created" make_ssh_key
expect "hook install" vfpass hook install
define_guest train0 --rdma
mapping train0 rail0 "$pf" "index: 0"
expect "attach" vfpass attach train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 900
expect "its driver is bound to the VF" wait_until 120 guest_drives train0 1
expect_contains "its RDMA device is up" uverbs0 rdma_up train0 "10.99.0.$number"

if [ "$role" = second ]; then
    serve_first 2400
    finish
    exit
fi

reach_second
expect "the guests reach each other" guest_shell train0 'ping -c 1 -W 60 10.99.0.2'
took "both hosts"

section "between two hosts"
verified 0 "verify passes" --peer "$second:train0"
expect_equal "the report names the peer" 10.98.0.2:train0 "$(member .peer)"
expect_equal "both data checks pass" "passed passed" \
    "$(member '[.findings[] | select(.key == "peer-data-host").result] | join(" ")')"
expect_equal "the counters of both VFs pass, seen by their hosts" \
    "rail0 passed host, rail0 passed host, 10.98.0.2:train0:rail0 passed host, 10.98.0.2:train0:rail0 passed host" \
    "$(member '[.findings[] | select(.key == "counters") | "\(.entry) \(.result) \(.observer)"] | sort | reverse | join(", ")')"
expect_equal "each host confirms that its VM holds the VF" "passed passed" \
    "$(member '[.findings[] | select(.key == "device-host").result] | join(" ")')"
expect_equal "equal PF addresses of two hosts are two PFs" "" "$(member '.findings[] | select(.key == "peer-wire").key')"
verified 0 "verify passes with a libvirt URI" --peer "$target" train0
expect_equal "the second host's leases are unchanged" running "$(there vfpass status --json | jq -r '.leases[0].state')"
verified 0 "verify passes with all pairs at the same time" --peer "$second:train0" --all-pairs --sustain 20
expect_equal "the pair has a rate alone and a rate together" true "$(member '.all_pairs[0].pairs |
    length == 1 and .[0].alone_gigabits_per_second > 0 and .[0].together_gigabits_per_second > 0')"
expect_equal "the pair moved data for 20 s" true "$(member '.all_pairs[0].overlap_seconds >= 20')"
expect_equal "the counters of both VFs pass three times" 6 \
    "$(member '[.findings[] | select(.key == "counters" and .result == "passed")] | length')"
took "the section"

section "what the second host reports is checked"
there "sh /vfpass/lab/connectx/control $pf freeze vf0" >/dev/null
verified 4 "the second host's counters do not move" --peer "$second:train0"
broken counters "" "10.98.0.2:train0:rail0"
there "sh /vfpass/lab/connectx/control $pf clear" >/dev/null
verified 4 "a byte is corrupted" --peer "$second:train0" --inject flip
broken peer-data-host "flipped in message" "rail0 - 10.98.0.2:train0:rail0"

section "a host that cannot be asked"
there "mv /usr/sbin/vfpass /usr/sbin/vfpass.away"
verified 6 "without vfpass there its observations are not observable" --peer "$second:train0"
seen peer-host not_observable "vfpass"
expect_equal "the data checks pass nevertheless" "passed passed" \
    "$(member '[.findings[] | select(.key == "peer-data-host").result] | join(" ")')"
# Hosts are upgraded one after another: a vfpass that speaks an earlier version of the protocol.
there "printf '%s\n' '#!/bin/sh' 'read -r line' 'echo \"{\\\"version\\\": 1}\"' >/usr/sbin/vfpass; chmod 755 /usr/sbin/vfpass"
verified 6 "with another version there its observations are not observable" --peer "$second:train0"
seen peer-host not_observable "the two versions of vfpass cannot work together: protocol 2 and 1"
there "mv /usr/sbin/vfpass.away /usr/sbin/vfpass"
expect_exit 2 "an unknown VM there is refused" vfpass verify train0 --peer "$second:nobody"
expect_exit 2 "a host name that ssh would take for an option is refused" \
    vfpass verify train0 --peer="-oProxyCommand=touch /tmp/owned:train0"
expect_exit 1 "the command was not run" test -e /tmp/owned
mv /root/.ssh/id_ed25519 /root/.ssh/away
expect_exit 1 "without a key the command fails" vfpass verify train0 --peer "$second:train0"
reason=$last_output
expect_contains "the reason is ssh's" "Permission denied" echo "$reason"
took "the section"

touch /lab/link/done
finish
