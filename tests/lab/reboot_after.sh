# The second half: the PF comes up without VFs, and the start brings them back with their values.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
restore_state
load_standin
pf=$(pf_address 0) netdev=$(pf_netdev 0)
# No hook at all when the daemon starts: libvirt remembers that until it is reloaded.
start_libvirt --no-mailbox
expect "hook install" vfpass hook install
expect_said "the first hook reloads the daemon" "reload"
expect "the PF has no VFs" test ! -e "/sys/bus/pci/devices/$pf/virtfn0"
expect "start" virsh start train0
vf_attributes "$netdev" 2 >/tmp/attributes
expect_same_file "the VF has its values again" /lab/state/attributes /tmp/attributes
expect "as many VFs as before" test "$(find "/sys/bus/pci/devices/$pf/" -name 'virtfn*' | wc -l)" = 4
expect "the lease runs" has_lease running
expect "status sees no drift" vfpass status train0
virsh destroy train0 >/dev/null
wait_until 20 has_lease reserved
expect "detach" vfpass detach train0
expect "VFs that vfpass made are gone" test ! -e "/sys/bus/pci/devices/$pf/virtfn0"
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the XML is as it was before the reboot" /lab/state/xml.before /tmp/xml.after
finish
