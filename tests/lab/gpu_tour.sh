# The tour for GPUs, word for word: from a GPU and a NIC of the host to checked bytes in the GPU's memory in a guest, and back. The GPU is
# the lab's stand-in. The arguments are those of tour_common.sh.
# covers: docs/gpu-tour.md scripts/tour tests/lab/tour_common.sh src/commands src/report src/guest src/probe/gpu src/topology lab/gpu
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tour_common.sh
source /vfpass/tests/lab/tour_common.sh

write_mapping() {
    cat >"$vms/train0.yaml" <<'YAML'
version: 1
vm: train0
gpus:
  - {name: gpu0, pci: "0000:44:00.0"}
vfs:
  - name: rail0
    pf: {near: gpu0}
    guest: {address: 10.99.0.1/24, mtu: 9000}
YAML
}

section "the host of the tour"
# With mlx5_ib the PFs have RDMA devices, which `near` looks for.
require "mlx5_core and mlx5_ib load" load_mlx5 rdma
pf=$(pf_address 0)
expect_equal "the GPU is the page's" 0000:44:00.0 "$(lspci -D -d 10de: | head -n 1 | cut -d' ' -f1)"
has_rdma_device() { test -d "$pci_devices/$1/infiniband"; }
for each in 0 1; do
    expect "PF $each is up" ip link set dev "$(pf_netdev "$each")" up
    expect "PF $each has an RDMA device" wait_until 60 has_rdma_device "$(pf_address "$each")"
done
gpu_state() { driver_of 0000:44:00.0; cat "$pci_devices/0000:44:00.0/driver_override"; }
# Not within a check, which would wait for the end of the daemons, which keep its pipe open.
start_libvirt
require "libvirtd starts" virsh list
require "vfpass is installed" install_programs
# The UUID determines the automatic MAC.
require "the domain is defined" define_guest train0 --gpu --uuid 5d1a7c1e-9a0b-4c53-8f6e-2b7c1f0a9d34
expect "its XML is in libvirt's order" settle train0
expect "it has a mapping" write_mapping
remember_host "$pf"
before=$(gpu_state)

section "the tour for GPUs"
run_page docs/gpu-tour.md
took "the tour"

section "restored"
compare_host "$pf"
expect_equal "the GPU's driver and override" "$before" "$(gpu_state)"
finish
