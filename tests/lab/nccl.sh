# NCCL between two guests of one host (verify --nccl), each with a VF and a stand-in GPU: the unchanged probe loads the lab's stand-ins for
# libcuda and libnccl (lab/gpu), which write into each other's GPU memory by RDMA; the host passes the unique ID on.
# covers: src/probe/nccl src/guest/verify/*nccl* src/commands/verification_steps.cpp lab/gpu tests/fake/nccl tests/lab/nccl_guests.sh
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh
# shellcheck source=SCRIPTDIR/nccl_guests.sh
source /vfpass/tests/lab/nccl_guests.sh

section "the collectives"
# Once with all sizes, which the pair takes minutes for. Those of 8 bytes to 4 KiB fit into what the probe uses of the stand-in's memory.
verified 0 "verify passes" --sizes --iterations 1
seen nccl-ranks passed "rank 0 in train0 with NCCL 2.28.9, rank 1 in train1"
seen nccl-data passed "20 operations, no wrong value"
seen nccl-transport passed "GDRDMA over rail0"
seen nccl-traffic passed bytes
expect_equal "the traffic of both VFs is the host's observation" "train0: host passed, train1: host passed" \
    "$(member '[.findings[] | select(.key == "nccl-traffic") | "\(.entry // "train0:") \(.observer) \(.result)"] | join(", ")')"
expect_equal "each operation and size has a figure" 20 "$(member '[.figures[] | select(.source | contains("nccl"))] | length')"
jq -c '.findings[] | select(.key | startswith("nccl")) | [.key, .entry, .result, .seen]' <<<"$document"
took "a verification"
finish
