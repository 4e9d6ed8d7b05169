# vfpass verify and verify --peer over frames that a card switches (machine igb): two guests with SoftRoCE over
# igbvf, checked against the 82576's own counters for each VF.
# covers: lab/igb src/agent src/verify src/probe
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/igb.sh
source /vfpass/lab/lib/igb.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# Under emulation SoftRoCE is slow, so messages are small and few.
small=(--bytes 4K --iterations 8 --no-tools)
peer=() timeout=1500
verify_json() { vfpass verify train0 "${peer[@]}" --json --timeout $timeout "${small[@]}" "$@" 2>/tmp/verify.log; }

# give NUMBER VLAN: writes a mapping with VF N in that VLAN for trainN, and attaches it.
give() {
    mapping "train$1" rail0 "$pf" "index: $1" "vlan: {id: $2}"
    expect "attach train$1, VLAN $2" vfpass attach "train$1"
}

# sent_back: makes train0's packets to itself leave through its VF, and train1 send them back. Otherwise they stay
# inside, because SoftRoCE never passes packets for the netdev's own MAC to the netdev. The local routing table is used
# only for incoming packets; outgoing ones are routed to train1.
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
expect "igb is bound to the PF and its port has a link" load_igb
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 2
start_libvirt --no-mailbox
expect "hook install" vfpass hook install
# One after the other: two guests that boot in parallel take twice as long.
for number in 0 1; do
    define_guest "train$number" --igb --rdma
    give "$number" 100
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 600
    expect "the guest's VF has a link" guest_up "train$number" "10.99.0.$((number + 1))"
    expect_contains "a SoftRoCE link is added" uverbs0 \
        guest_shell "train$number" 'rdma link add rxe0 type rxe netdev eth0 && ls /dev/infiniband'
done
expect "train0 reaches train1" reaches train0 10.99.0.2
took "both guests"

section "igb reports no counters"
peer=(--peer train1)
verified 6 "all data arrives, but the host cannot confirm it"
broken counters "has no counters"
expect_equal "both data checks pass" "passed passed" \
    "$(member '[.findings[] | select(.key == "peer-data-host").result] | join(" ")')"
took "the section"

section "between guests, with the card's counters"
expect "the module exposes the card's counters" show_registers
sent=$(vf_counter 0 tx bytes) received=$(vf_counter 1 rx bytes)
verified 0 "verify passes"
expect_contains "the reach check has a latency" " us in one direction" \
    member '.findings[] | select(.key == "peer-reach").seen'
expect_equal "the counters checks of both VFs pass" \
    "rail0 passed, rail0 passed, train1:rail0 passed, train1:rail0 passed" \
    "$(member '[.findings[] | select(.key == "counters") | "\(.entry) \(.result)"] | sort | join(", ")')"
# 8 messages of 4 KiB, which one side writes and reads.
expect "train0's VF has counted the written bytes as sent" test "$(vf_counter 0 tx bytes)" -ge $((sent + 32768))
expect "train1's VF has counted them as received" test "$(vf_counter 1 rx bytes)" -ge $((received + 32768))
took "the section"

section "one guest: SoftRoCE loops inside and the card counts nothing"
peer=()
verified 4 "the counters check fails although all data arrived"
broken counters " bytes"
expect_equal "the data check passes" passed "$(finding data-host result)"
took "the section"

section "one guest, with packets through the card"
expect "train0's packets to itself are routed through train1" sent_back
sent=$(vf_counter 0 tx bytes) received=$(vf_counter 0 rx bytes)
verified 0 "verify passes"
expect_equal "both counters checks pass" "passed passed" \
    "$(member '[.findings[] | select(.key == "counters").result] | join(" ")')"
expect "the VF has counted the written and read bytes as sent" test "$(vf_counter 0 tx bytes)" -ge $((sent + 65536))
expect "the VF has counted them as received" test "$(vf_counter 0 rx bytes)" -ge $((received + 65536))
took "the section"

section "different VLANs"
# A probe that cannot reach its peer waits for two fifths of this timeout.
peer=(--peer train1) timeout=300
ip link set dev "$netdev" vf 1 vlan 200
verified 4 "a VLAN that was changed on the card"
broken peer-reach "" "rail0 - train1:rail0"
give 1 200
verified 4 "a VLAN in the mapping"
broken peer-network "100"
give 1 100
timeout=1500
verified 0 "verify passes in the same VLAN again"
took "the whole section"
finish
