# Guests that lie to verify --nccl: about the values that they have and the data that they have moved, and about what they checked.
# covers: src/probe/nccl src/guest/verify/*nccl* src/commands/verification_steps.cpp lab/gpu tests/fake/nccl tests/lab/nccl_guests.sh
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh
# shellcheck source=SCRIPTDIR/nccl_guests.sh
source /vfpass/tests/lab/nccl_guests.sh

section "guests that lie"
for guest in train0 train1; do
    setting $guest FAKE_NCCL_FAULT=invents
done
# NCCL's own figures, some hundred bytes, still move: the invented results must be more than that.
verified 4 "both claim GDRDMA and right values, and move nothing" --bytes 4096 --iterations 2000
seen nccl-data passed "no wrong value"
seen nccl-transport passed GDRDMA
seen nccl-traffic failed bytes
expect_contains "the remedy says what it means" "do not trust the guest" finding nccl-traffic remedy
# The report of a probe that ran, but checked nothing; the library ends the probe with it.
report='{"passed": true, "nccl_version": "2.28.9", "ranks": 2, "left_out": [], "log": {"devices": [], "connections": []}, "runs": [
    {"operation": "all-reduce", "bytes": 64, "iterations": 20, "seconds": 1, "checked_values": 0, "wrong_values": 0,
     "bus_gigabytes_per_second": 400}]}'
for number in 0 1; do
    setting "train$number" FAKE_NCCL_FAULT=claims FAKE_NCCL_RANK=$number "'FAKE_NCCL_REPORT=$(tr -d '\n' <<<"$report")'"
done
verified 4 "both report a pass without a checked value" "${usual[@]}"
seen nccl-data failed "train0, all-reduce of 64 bytes: only 0 values checked"
finish
