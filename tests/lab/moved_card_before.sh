# First boot: a VM is attached. Before the second boot a card is added, which changes the bus numbers.
# covers: src/host/sysfs/pci_function.* src/apply/device_owner.cpp src/plan/unused_leases.cpp src/state/lease_*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 4
start_libvirt
vfpass hook install
define_guest a
settle a
mapping a rail0 "$pf" 'index: 1' 'vlan: {id: 11}'
expect "attach a" vfpass attach a
save_state
expect_equal "the PF's address" 0000:01:00.0 "$pf"
finish
