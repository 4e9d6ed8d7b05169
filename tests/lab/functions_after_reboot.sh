# After the power cut of pci_functions.sh: the function is bound to the host's driver again, and the start rebinds
# it.
# covers: src/hook src/plan/plan_hook.cpp src/plan/*function* src/plan/check_device.cpp src/plan/device_steps.cpp
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

single=0000:03:00.0
is_on() { test "$(driver_of "$1")" = "$2"; }

install_vfpass
restore_state
modprobe xhci_pci
load_mlx5
start_libvirt
vfpass hook install
expect "the function is bound to the host's driver" wait_until 20 is_on "$single" xhci_hcd
expect "status reports no drift" vfpass status train0
expect "start" virsh start train0
expect "prepare has bound the function to vfio-pci" is_on "$single" vfio-pci
expect "the leases are running" has_lease running
expect "status reports no drift" vfpass status train0
virsh destroy train0 >/dev/null
wait_until 20 has_lease reserved
expect "detach" vfpass detach train0
expect "the host's driver is restored" is_on "$single" xhci_hcd
expect_equal "driver_override is empty" "(null)" "$(cat "$pci_devices/$single/driver_override")"
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the XML is the one from before the reboot" /lab/state/xml.before /tmp/xml.after
finish
