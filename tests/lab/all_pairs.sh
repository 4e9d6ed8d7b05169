# vfpass verify with several VFs at the same time: two guests with a VF of each of two PFs. In one guest, VFs of different PFs
# are verified at the same time; between two guests, --all-pairs moves data over all pairs at the same time.
# covers: src/guest/verify/concurrent_runs.*
# covers: src/guest/verify/verify_guest.* src/guest/verify/verify_path.* tests/lab/verify_common.sh lab/connectx
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# The model of the card transfers fast, the guest checks slowly, and each pass of two guests costs messages through both agents: small
# messages take the minimum time in few passes with few bytes.
small=(--bytes 64 --iterations 50000 --relaxed-ordering off --timeout 1500)
verify_json() { vfpass verify train0 --json "${small[@]}" "$@" 2>/tmp/verify.log; }

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
require "mlx5_core loads" load_mlx5
pfs=("$(pf_address 0)" "$(pf_address 1)")
for number in 0 1; do
    make_vfs "${pfs[number]}" 2
    ip link set dev "$(pf_netdev "$number")" up
done
start_libvirt
expect "hook install" vfpass hook install
# One after the other: two guests that boot in parallel take twice as long.
for number in 0 1; do
    guest=train$number
    define_guest "$guest" --rdma --vcpus 4
    two_rails "$guest" "$number"
    expect "attach $guest" vfpass attach "$guest"
    expect "virsh start $guest" virsh start "$guest"
    expect "$guest's agent answers" wait_for_agent "$guest" 600
    expect "its driver is bound to both VFs" wait_until 120 guest_drives "$guest" 2
    expect_contains "its RDMA devices are up" uverbs1 rdma_up "$guest" "10.99.0.$((number + 1))" "10.99.1.$((number + 1))"
done
for rail in 0 1; do
    expect "train0 reaches train1 over rail$rail" guest_shell train0 "ping -c 1 -W 60 10.99.$rail.2"
done
took "both guests"

section "the VFs of one guest at the same time"
passed() { member "[.findings[] | select(.key == \"$1\" and .result == \"passed\").entry] | join(\" \")"; }
verified 0 "verify passes"
expect_equal "two VFs were verified at the same time" 2 "$(member .concurrent_vfs)"
expect_equal "the data of both is correct, in the mapping's order" "rail0 rail0 rail1 rail1" "$(passed data-host)"
verified 0 "verify --sequential passes" --sequential
expect_equal "one VF at a time" 1 "$(member .concurrent_vfs)"
expect_equal "the data of both is correct" "rail0 rail0 rail1 rail1" "$(passed data-host)"
expect_equal "each is compared with the other, which is idle" "rail0 rail0 rail1 rail1" "$(passed other-vfs)"
took "the section"

section "all pairs of two guests"
pairs="rail0 - train1:rail0, rail1 - train1:rail1"
verified 0 "verify passes with all pairs at the same time" --peer train1 --all-pairs --sustain 40
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

section "a pair that the card's switch separates"
ip link set dev "$(pf_netdev 1)" vf 1 vlan 4
verified 4 "verify fails" --peer train1 --all-pairs --sustain 5
expect_equal "the other pair passes" "rail0 - train1:rail0 rail0 - train1:rail0" "$(passed peer-data-host)"
expect_equal "the failed check names the pair" "rail1 - train1:rail1" \
    "$(member '[.findings[] | select(.result == "failed").entry] | unique | join(", ")')"
finish
