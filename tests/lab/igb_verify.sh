# vfpass verify and verify --peer over frames that a card switched (machine igb): two guests with SoftRoCE over
# igbvf, judged by what the 82576 itself counts for each VF.
# covers: lab/igb src/guest src/probe
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/igb.sh
source /vfpass/lab/lib/igb.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# Emulated, SoftRoCE moves little: small messages, and few of them.
small=(--bytes 4K --iterations 8 --no-tools)
peer=() timeout=1500
verify_json() { vfpass verify train0 "${peer[@]}" --json --timeout $timeout "${small[@]}" "$@" 2>/tmp/verify.said; }

# give NUMBER VLAN: trainN's mapping is VF N in that VLAN, and attach makes it so.
give() {
    mapping "train$1" rail0 "$pf" "index: $1" "vlan: {id: $2}"
    expect "attach train$1, VLAN $2" vfpass attach "train$1"
}

# sent_back: packets of train0 to itself leave by its VF, and train1 sends them back. Without it they stay inside:
# SoftRoCE never gives its netdev what is for the netdev's own MAC. The local table counts for what arrives only;
# what leaves finds a route to train1.
# shellcheck disable=SC2016  # the guest's shell expands it
sent_back() {
    guest_shell train0 "set -e
        ip rule add pref 1 iif eth0 lookup local
        ip rule add pref 2 lookup 99; ip rule add pref 3 lookup local; ip rule del pref 0
        ip route add 10.99.0.1 dev eth0 table 99
        arp -i eth0 -s 10.99.0.1 $(vf_mac 1)
        echo 1 >/proc/sys/net/ipv4/conf/eth0/accept_local" &&
        guest_shell train1 'echo 1 >/proc/sys/net/ipv4/ip_forward
            for name in all eth0; do echo 0 >/proc/sys/net/ipv4/conf/$name/send_redirects; done'
}

section "two guests with SoftRoCE over igbvf, in one VLAN"
install_vfpass
expect "igb drives the PF, and its port has a link" load_igb
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 2
start_libvirt --no-mailbox
expect "hook install" vfpass hook install
# One after the other: two guests that boot beside each other take twice as long as both in turn.
for number in 0 1; do
    define_guest "train$number" --igb --rdma
    give "$number" 100
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 600
    expect "its VF has a link" guest_up "train$number" "10.99.0.$((number + 1))"
    expect_contains "SoftRoCE" uverbs0 \
        guest_shell "train$number" 'rdma link add rxe0 type rxe netdev eth0 && ls /dev/infiniband'
done
expect "they reach each other" reaches train0 10.99.0.2
took "both guests"

section "igb tells no counters"
peer=(--peer train1)
verified 6 "all data came, and nobody on the host has seen it"
broken counters "does not count"
expect_equal "every byte, written and read" "passed passed" \
    "$(member '[.findings[] | select(.key == "peer-data-host").result] | join(" ")')"
took "it"

section "from guest to guest, and the card counts"
expect "its registers reach rtnetlink" show_registers
sent=$(vf_counter 0 tx bytes) received=$(vf_counter 1 rx bytes)
verified 0 "it passes"
expect_contains "messages come back" " us in one direction" \
    member '.findings[] | select(.key == "peer-reach").seen'
expect_equal "the counters of both VFs have moved, twice" \
    "rail0 passed, rail0 passed, train1:rail0 passed, train1:rail0 passed" \
    "$(member '[.findings[] | select(.key == "counters") | "\(.entry) \(.result)"] | sort | join(", ")')"
# 8 messages of 4 KiB, written by one side and read by it.
expect "train0's VF has sent what was written" test "$(vf_counter 0 tx bytes)" -ge $((sent + 32768))
expect "train1's VF has received it" test "$(vf_counter 1 rx bytes)" -ge $((received + 32768))
took "it"

section "inside one guest: SoftRoCE's own loop does not reach the card"
peer=()
verified 4 "the guest says that every byte came"
broken counters " bytes"
expect_equal "and it did, but not through this VF" passed "$(finding data-host result)"
took "it"

section "inside one guest, over the card"
expect "train0's packets to itself go by train1" sent_back
sent=$(vf_counter 0 tx bytes) received=$(vf_counter 0 rx bytes)
verified 0 "it passes"
expect_equal "both counters' checks pass" "passed passed" \
    "$(member '[.findings[] | select(.key == "counters").result] | join(" ")')"
expect "the VF has sent what was written and read" test "$(vf_counter 0 tx bytes)" -ge $((sent + 65536))
expect "and received it" test "$(vf_counter 0 rx bytes)" -ge $((received + 65536))
took "it"

section "two VLANs"
# A probe that reaches nobody waits two fifths of this.
peer=(--peer train1) timeout=300
ip link set dev "$netdev" vf 1 vlan 200
verified 4 "a VLAN that somebody changed on the card"
broken peer-reach "" "rail0 - train1:rail0"
give 1 200
verified 4 "a VLAN of the mapping"
broken peer-network "100"
give 1 100
timeout=1500
verified 0 "in one VLAN again, all of it passes"
took "all"
finish
