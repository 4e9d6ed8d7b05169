# Ranks that fail between two guests (verify --nccl): one dies, one gets a wrong value, and one never joins.
# covers: src/probe/nccl src/guest/verify/*nccl* src/commands/verification_steps.cpp lab/gpu tests/fake/nccl tests/lab/nccl_guests.sh
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh
# shellcheck source=SCRIPTDIR/nccl_guests.sh
source /vfpass/tests/lab/nccl_guests.sh

section "ranks that fail"
setting train1 FAKE_NCCL_FAULT=dies FAKE_NCCL_RANK=1
began=$SECONDS
verified 4 "a rank dies" "${usual[@]}"
seen nccl-ranks failed "rank 1 (train1)"
expect "verify ends long before its deadline" test $((SECONDS - began)) -lt $((timeout / 2))
setting train1 FAKE_NCCL_FAULT=wrong FAKE_NCCL_RANK=1
verified 4 "a rank gets a wrong value" "${usual[@]}"
seen nccl-data failed "train1, all-reduce of 64 bytes: 1 wrong values"
setting train1 FAKE_NCCL_FAULT=absent FAKE_NCCL_RANK=1
# Enough for what comes before NCCL.
timeout=600 began=$SECONDS
verified 4 "a rank never joins" "${usual[@]}"
seen nccl-ranks failed "rank 0 waits at"
expect "verify ends at its deadline" test $((SECONDS - began)) -lt $((timeout + 60))
finish
