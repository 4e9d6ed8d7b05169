# Sourced by nccl.sh, nccl_ranks.sh and nccl_lies.sh: two guests of one host, each with a VF and a stand-in GPU (lab/gpu), and verify --nccl.
# shellcheck shell=bash disable=SC2154,SC2034  # what the labs' other files leave, and what the tests use

timeout=1800
# Each pass of the pair before NCCL costs messages through both agents: small messages take the minimum time in few passes.
usual=(--bytes 64 --iterations 2000)
verify_json() {
    vfpass verify train0 --peer train1 --nccl --json --relaxed-ordering off --no-tools --timeout $timeout "$@" 2>/tmp/verify.log
}

# setting GUEST [NAME=VALUE...]: settings of the guest's libnccl.
setting() { guest_shell "$1" "printf '%s\n' ${*:2} >/run/stand-in-nccl"; }

section "two guests with a VF and a GPU each"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
mapfile -t gpus < <(lspci -D -d 10de: | cut -d' ' -f1)
make_vfs "$pf" 2
ip link set dev "$netdev" up
start_libvirt
expect "hook install" vfpass hook install
for number in 0 1; do
    define_guest "train$number" --gpu
    mapping "train$number" rail0 "$pf" "index: $number" 'guest: {mtu: 9000}'
    printf 'gpus:\n  - {name: gpu0, pci: "%s"}\n' "${gpus[$number]}" >>"$vms/train$number.yaml"
    # The second GPU is on the other NUMA node than the PF, and the guests have no NUMA cells.
    [ "$number" = 0 ] || echo 'topology: flat' >>"$vms/train$number.yaml"
    expect "attach train$number" vfpass attach "train$number"
    expect "virsh start train$number" virsh start "train$number"
    expect "train$number's agent answers" wait_for_agent "train$number" 900
    expect_contains "its RDMA device is up" uverbs0 rdma_up "train$number" "10.99.0.$((number + 1))"
done
expect "train0 reaches train1" guest_shell train0 'ping -c 1 -W 60 10.99.0.2'
took "both guests"
