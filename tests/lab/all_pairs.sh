# vfpass verify with several VFs at the same time: two guests with a VF of each of two PFs. In one guest, VFs of different PFs
# are verified at the same time; between two guests, --all-pairs moves data over all pairs at the same time.
# covers: src/verify/all_pairs.* src/verify/judge_together.* src/verify/concurrent_tasks.* src/verify/independent_vfs.*
# covers: src/verify/verify_guest.cpp src/verify/verify_vf.* tests/lab/verify_common.sh lab/lib/wire.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# Under double emulation SoftRoCE is slow, so messages are small and few.
small=(--bytes 4K --iterations 8 --timeout 1500)
verify_json() { vfpass verify train0 --json "${small[@]}" "$@" 2>/tmp/verify.log; }

# rdma_up NAME NUMBER: rail N has the address 10.99.N.NUMBER. Both rails are on one segment, so ARP is restricted to the
# interface that has the address, as guest-setup does.
rdma_up() {
    # shellcheck disable=SC2016  # the guest's shell expands it
    guest_shell "$1" 'rail=0
        echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore; echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce
        ip link set lo up
        for netdev in $(ls -d /sys/bus/pci/drivers/mlx5_core/0*/net/*); do
            netdev=${netdev##*/}
            ip link set "$netdev" mtu 9000 up && ip address add "10.99.$rail.'"$2"'/24" dev "$netdev" &&
                rdma link add "rxe$rail" type rxe netdev "$netdev" || exit
            rail=$((rail + 1))
        done
        ls /dev/infiniband'
}

two_rails() {
    cat >"$vms/$1.yaml" <<YAML
version: 1
vm: $1
vfs:
  - {name: rail0, pf: {pci: "${pfs[0]}"}, index: $2}
  - {name: rail1, pf: {pci: "${pfs[1]}"}, index: $2}
YAML
}

section "two guests with two VFs each"
install_vfpass
load_standin
pfs=("$(pf_address 0)" "$(pf_address 1)")
for number in 0 1; do
    make_vfs "${pfs[number]}" 2
    ip link set dev "$(pf_netdev "$number")" up
done
start_libvirt
expect "a wire is created" start_wire
expect "hook install" vfpass hook install
# One after the other: two guests that boot in parallel take twice as long.
for number in 0 1; do
    guest=train$number
    define_guest "$guest" --rdma --wire --wire --vcpus 4
    two_rails "$guest" "$number"
    expect "attach $guest" vfpass attach "$guest"
    expect "virsh start $guest" virsh start "$guest"
    expect "$guest's agent answers" wait_for_agent "$guest" 600
    expect "its VFs are connected to their wires" wire_vf "$guest"
    expect_contains "two SoftRoCE links are added" uverbs1 rdma_up "$guest" $((number + 1))
done
for rail in 0 1; do
    expect "train0 reaches train1 over rail$rail" guest_shell train0 "ping -c 1 -W 60 10.99.$rail.2"
done
took "both guests"

section "the VFs of one guest at the same time"
passed() { member "[.findings[] | select(.key == \"$1\" and .result == \"passed\").entry] | join(\" \")"; }
mirror_traffic train0 &
mirror=$!
verified 0 "verify passes"
expect_equal "two VFs were verified at the same time" 2 "$(member .concurrent_vfs)"
expect_equal "the data of both is correct, in the mapping's order" "rail0 rail0 rail1 rail1" "$(passed data-host)"
verified 0 "verify --sequential passes" --sequential
expect_equal "one VF at a time" 1 "$(member .concurrent_vfs)"
expect_equal "the data of both is correct" "rail0 rail0 rail1 rail1" "$(passed data-host)"
expect_equal "each is compared with the other, which is idle" "rail0 rail0 rail1 rail1" "$(passed other-vfs)"
kill "$mirror"
took "the section"

section "all pairs of two guests"
for number in 0 1; do
    for rail in 0 1; do
        mirror_wire "train$number" "${pfs[rail]}" "$number" "$rail" &
    done
done
pairs="rail0 - train1:rail0, rail1 - train1:rail1"
verified 0 "verify passes with all pairs at the same time" --peer train1 --all-pairs --sustain 20
expect_equal "both pairs have a rate alone and a rate together" "$pairs" "$(member '[.all_pairs[0].pairs[] |
    select(.alone_gigabits_per_second > 0 and .together_gigabits_per_second > 0).entry] | join(", ")')"
expect_equal "the sum is that of the pairs" true "$(member '.all_pairs[0] |
    ([.pairs[].together_gigabits_per_second] | add) - .aggregate_gigabits_per_second | fabs < 0.001')"
expect_equal "both pairs moved data at the same time for at least 10 s" true "$(member '.all_pairs[0].overlap_seconds >= 10')"
expect_equal "each pair's check passes" "$pairs" \
    "$(member '[.findings[] | select(.key == "peer-together-host" and .result == "passed").entry] | join(", ")')"
expect_equal "the counters of each VF pass three times" "rail0 3, rail1 3, train1:rail0 3, train1:rail1 3" "$(member '[.findings[] |
    select(.key == "counters" and .result == "passed").entry] | group_by(.) | map("\(.[0]) \(length)") | join(", ")')"
took "the section"

section "a pair whose wire is cut"
ip link set "$(wire_tap train1 1)" down
verified 4 "verify fails" --peer train1 --all-pairs --sustain 5
expect_equal "the other pair passes" "rail0 - train1:rail0 rail0 - train1:rail0" "$(passed peer-data-host)"
expect_equal "the failed check names the pair" "rail1 - train1:rail1" \
    "$(member '[.findings[] | select(.result == "failed").entry] | unique | join(", ")')"
finish
