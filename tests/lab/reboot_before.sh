# The first half of the reboot test: attach, and leave the state on a disk that survives.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_standin
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
start_libvirt
vfpass hook install
define_guest train0
settle train0
virsh dumpxml --inactive --security-info train0 >/lab/state/xml.before
mapping train0 rail0 "$pf" 'index: 2' 'vlan: {id: 100, qos: 1}'
expect "attach" vfpass attach train0
vf_attributes "$netdev" 2 >/lab/state/attributes
save_state
finish
