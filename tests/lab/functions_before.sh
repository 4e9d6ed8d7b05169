# The first half of the reboot test for PCI functions: attach, and leave the state on a disk.
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

single=0000:03:00.0
install_vfpass
modprobe xhci_pci
load_standin
start_libvirt
vfpass hook install
define_guest train0
settle train0
virsh dumpxml --inactive --security-info train0 >/lab/state/xml.before
mapping train0 rail0 "$(pf_address 0)"
printf 'gpus:\n  - {name: gpu0, pci: "%s"}\n' "$single" >>"$vms/train0.yaml"
expect "attach" vfpass attach train0
expect "the function is on vfio-pci" test "$(driver_of "$single")" = vfio-pci
save_state
finish
