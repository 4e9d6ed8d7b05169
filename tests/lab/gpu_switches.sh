# Several stand-in GPUs (lab/gpu) below switches with NICs: topo shows the distances, each of two guests gets a GPU and a VF of the NIC that
# is nearest to it, and both are verified at the same time.
# covers: src/topology src/plan/resolve_near.cpp src/plan/*place* src/guest/verify/choose_gpus.cpp src/guest/verify/judge_gpu.cpp lab/gpu
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

export AGENT_TIMEOUT=500

section "the host"
install_vfpass
# With mlx5_ib the PFs have RDMA devices, which `near` looks for.
require "mlx5_core and mlx5_ib load" load_mlx5 rdma
one=$(pf_address 0) other=$(pf_address 1)
mapfile -t gpus < <(lspci -D -d 10de: | cut -d' ' -f1)
require "there are four GPUs" test "${#gpus[@]}" = 4
has_rdma_device() { test -d "$pci_devices/$1/infiniband"; }
for number in 0 1; do
    expect "PF $number is up" ip link set dev "$(pf_netdev "$number")" up
    expect "PF $number has an RDMA device" wait_until 60 has_rdma_device "$(pf_address "$number")"
done
start_libvirt
require "libvirtd starts" virsh list
snapshot_host /tmp/host.before "$one" "$other"

section "topo"
vfpass topo
vfpass topo --json >/tmp/topo.json
# distances GPU: to both PFs.
distances() {
    jq -r --arg gpu "$1" --arg one "$one" --arg other "$other" \
        '[$one, $other] | map(. as $pf | $topo[0].distances[] | select(.gpu == $gpu and .pf == $pf).distance) | join(" ")' \
        --null-input --slurpfile topo /tmp/topo.json
}
# between GPU GPU: in whichever order topo lists them.
between() {
    jq -r --arg gpu "$1" --arg other "$2" '.gpu_distances[] |
        select([.gpu, .other_gpu] | sort == ([$gpu, $other] | sort)).distance' /tmp/topo.json | sort -u
}
expect_equal "the first GPU is beside the first PF" "PIX SYS" "$(distances "${gpus[0]}")"
expect_equal "so is the second one" "PIX SYS" "$(distances "${gpus[1]}")"
expect_equal "the third GPU is beside the second PF" "SYS PIX" "$(distances "${gpus[2]}")"
expect_equal "the fourth one is one switch farther away" "SYS PXB" "$(distances "${gpus[3]}")"
expect_equal "two GPUs of one switch" PIX "$(between "${gpus[0]}" "${gpus[1]}")"
expect_equal "two GPUs of a switch and the switch below it" PXB "$(between "${gpus[2]}" "${gpus[3]}")"
expect_equal "two GPUs of two nodes" SYS "$(between "${gpus[0]}" "${gpus[2]}")"

section "each guest gets a GPU and a VF of the nearest PF"
expect "hook install" vfpass hook install
# pair VM GPU: a guest with this GPU and a VF near it.
pair() {
    printf 'version: 1\nvm: %s\ntopology: mirror\ngpus:\n  - {name: gpu0, pci: "%s"}\n' "$1" "$2" >"$vms/$1.yaml"
    printf 'vfs:\n  - {name: rail0, pf: {near: gpu0}, guest: {mtu: 9000}}\n' >>"$vms/$1.yaml"
    define_guest "$1" --gpu
}
pf_of() { vfpass status --json | jq -r --arg vm "$1" '.leases[] | select(.kind == "vf" and .domain.name == $vm).pf'; }
expect "train0 is defined" pair train0 "${gpus[1]}"
expect "train1 is defined" pair train1 "${gpus[3]}"
expect_exit 3 "plan" vfpass plan train0
expect_said "plan names the nearest PF" "nearest to gpu0 is PF $one"
expect "attach train0" vfpass attach train0
expect "attach train1" vfpass attach train1
expect_equal "train0 has a VF of the first PF" "$one" "$(pf_of train0)"
expect_equal "train1 has a VF of the second PF" "$other" "$(pf_of train1)"
# on_both_sides VM: the distance of the two devices on the host and in the guest, as `topo --vm` predicts it.
on_both_sides() { vfpass topo --vm "$1" | awk '$1 == "rail0" && $2 == "X" {print $3}' | paste -sd' '; }
expect_equal "train0's devices are as near as on the host" "PIX PIX" "$(on_both_sides train0)"
expect_equal "train1's devices as well" "PXB PXB" "$(on_both_sides train1)"
for number in 0 1; do
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 900
    expect_contains "its RDMA device is up" uverbs0 rdma_up "train$number" "10.99.$number.1"
done
expect "status reports no drift" vfpass status
took "the section"

section "both guests are verified at the same time"
# Few messages, because both guests poll their queues on their only vCPUs: neither agent may be silent for longer than one call may
# take (deadlines::agentCallWithin).
verify() { vfpass verify "$1" --json --timeout 1500 --bytes 64 --iterations 2000 --no-tools --relaxed-ordering off; }
verify train0 >/tmp/train0.json 2>/tmp/train0.log &
first=$!
verify train1 >/tmp/train1.json 2>/tmp/train1.log &
second=$!
wait "$first"
expect_equal "verify of train0 ends with exit code 0" 0 $?
wait "$second"
expect_equal "verify of train1 ends with exit code 0" 0 $?
for vm in train0 train1; do
    document=$(cat "/tmp/$vm.json")
    expect_equal "$vm has passed" passed "$(member .result)"
    expect_equal "each path of data has passed" "data-gpu passed, data-gpu-to-host passed, data-host passed, data-host-to-gpu passed" \
        "$(member '[.findings[] | select(.key | startswith("data-")) | "\(.key) \(.result)"] | unique | join(", ")')"
    expect_equal "the host has counted its bytes" passed "$(finding counters result)"
    seen gpu-tested passed "tested with rail0"
    seen gpu-path passed DMA-BUF
    jq -c '.findings[] | select(.result != "passed") | [.key, .result, .seen]' <<<"$document"
done
document=$(cat /tmp/train0.json)
seen gpu-distance passed "PIX to GPU gpu0"
document=$(cat /tmp/train1.json)
seen gpu-distance passed "PXB to GPU gpu0"
took "the section"

section "the devices go back"
for vm in train0 train1; do
    expect "$vm stops" virsh --quiet destroy "$vm"
    expect "detach $vm" vfpass detach "$vm"
done
expect "no lease is left" no_lease
snapshot_host /tmp/host.after "$one" "$other"
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after
finish
