# A VF and a stand-in GPU (lab/gpu) that vfpass gives a guest, below one switch as on the host: libvirt starts it, the guest's driver has
# the memory, verify finds GPU, BAR, distance and DMA-BUF export, and the unchanged probe fills, checks and exports.
# covers: src/probe/gpu src/guest/verify src/topology src/plan/*place* lab/gpu
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

export AGENT_TIMEOUT=500

section "a guest with a VF and a GPU below one switch"
install_vfpass
require "mlx5_core loads" load_mlx5
# The first PF and the first GPU are on node 0, below one switch.
pf=$(pf_address 0) gpu=$(lspci -D -d 10de: | head -n 1 | cut -d' ' -f1)
make_vfs "$pf" 1
ip link set dev "$(pf_netdev 0)" up
start_libvirt
define_guest train0 --gpu
{
    printf 'version: 1\nvm: train0\ntopology: mirror\nvfs:\n'
    printf '  - {name: rail0, pf: {pci: "%s"}, guest: {mtu: 9000}}\n' "$pf"
    printf 'gpus:\n  - {name: gpu0, pci: "%s"}\n' "$gpu"
} >"$vms/train0.yaml"
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 900
expect_contains "its RDMA device is up" uverbs0 rdma_up train0 10.99.0.1

section "verify: every byte through the NIC to and from the GPU's memory"
verify() { vfpass verify train0 --json --bytes 64 --iterations 20000 --no-tools --relaxed-ordering off 2>/tmp/verify.log; }
# all_data RESULT: each of the four paths of data has a finding, and all findings have this result.
all_data() {
    expect_equal "each path of data: $1" "data-gpu $1, data-gpu-to-host $1, data-host $1, data-host-to-gpu $1" \
        "$(member '[.findings[] | select(.key | startswith("data-")) | "\(.key) \(.result)"] | unique | join(", ")')"
}
document=$(verify)
seen gpu-driver passed found
seen gpu-bar passed "64 MiB"
seen gpu-path passed DMA-BUF
seen gpu-distance passed "PIX to GPU gpu0"
all_data passed
expect_contains "the card registered the GPU's memory" "via dma-buf" finding data-gpu seen
jq -c '.findings[] | select(.key | startswith("data-")) | [.key, .result, .seen]' <<<"$document"

section "the probe by itself"
guest_shell train0 "/var/lib/vfpass-probe/vfpass-probe-* gpu-selftest --bytes 8M --rounds 1" >/tmp/said.json
expect_equal "memory is filled and checked at every alignment" true "$(jq .passed /tmp/said.json)"
expect_equal "it is exported as DMA-BUF" true "$(jq .dma_buf.exported /tmp/said.json)"
expect_equal "the GPU's name says what it is" "Stand-in GPU of the lab, no NVIDIA hardware" "$(jq -r .gpu /tmp/said.json)"

section "a GPU whose memory returns another byte"
expect "the host poisons a byte" sh /vfpass/lab/connectx/control "$gpu" poison 20
document=$(verify)
expect_equal "verify fails" failed "$(member .result)"
expect_equal "a path through the GPU fails" true \
    "$(member '[.findings[] | select(.key | startswith("data-gpu")) | .result == "failed"] | any')"
jq -c '.findings[] | select(.result == "failed") | [.key, .seen, .remedy]' <<<"$document"
expect "the host removes the poison" sh /vfpass/lab/connectx/control "$gpu" poison off
document=$(verify)
all_data passed

section "the devices go back"
expect "the guest stops" virsh --quiet destroy train0
expect "detach" vfpass detach train0
expect "nothing is left" vfpass recover
finish
