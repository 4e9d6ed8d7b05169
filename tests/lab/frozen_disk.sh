# The file system of /var/lib/vfpass hangs (fsfreeze): every write to it waits in the kernel, where no signal ends it. Each
# call of the hook ends at its own deadline (src/base/include/vfpass/base/default_deadlines.hpp) with the right result, so that libvirt is
# never held: other VMs start, the VM itself can be stopped, and a restarted daemon answers.
# covers: src/hook src/base/include/vfpass/base/default_deadlines.hpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

state=/var/lib/vfpass
mount_state() {
    modprobe -a loop ext4 && truncate -s 32M /tmp/state.img && mkfs.ext4 -q /tmp/state.img &&
        mkdir -p "$state" && chmod 700 "$state" && mount -o loop /tmp/state.img "$state" && chmod 700 "$state"
}
freeze() { sync && fsfreeze --freeze "$state"; }
thaw() { fsfreeze --unfreeze "$state"; }
# within SECONDS COMMAND...: the command's exit code, or 124 if it has not ended by then. The hook's deadlines are far below.
within() { timeout --kill-after=5 "$@"; }

install_vfpass
require "the state is on a file system of its own" mount_state
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
start_libvirt
vfpass hook install
define_tiny a
define_tiny b
define_tiny plain
mapping a rail0 "$pf" 'index: 1' 'vlan: {id: 11}'
mapping b rail0 "$pf" 'index: 2' 'vlan: {id: 12}'
expect "attach a" vfpass attach a
expect "attach b" vfpass attach b
expect "b starts" start_paused b
neutral=$(vf_attributes "$netdev" 1)

section "a start while the disk hangs"
require "freeze" freeze
expect_exit 1 "a does not start, and libvirt says so by itself" within 200 virsh --quiet start --paused a
took "the refused start"
expect_said "the reason is printed" "vfpass"
expect "a is shut off" guest_off a
expect "a VM without devices of vfpass starts" within 60 virsh --quiet start --paused plain
expect "libvirt lists its VMs" within 60 virsh list --all

section "a stop while the disk hangs"
expect "b stops" within 200 virsh --quiet destroy b
took "the stop"
expect "b is shut off" guest_off b
expect "a VM without devices of vfpass stops" within 60 virsh --quiet destroy plain

section "after the disk has recovered"
require "thaw" thaw
expect "recover" vfpass recover
expect "a second recover has nothing to do" vfpass recover
expect "no drift" vfpass status
expect_equal "the refused start left the VF as it was" "$neutral" "$(vf_attributes "$netdev" 1)"
expect "a starts" start_paused a
expect "a holds its VF" holds_vf a
expect "b starts" start_paused b

section "a restart of the daemon while the disk hangs"
require "freeze" freeze
export LIBVIRT_DEADLINE=40  # four times the deadline of a hook then
expect "libvirt answers although two hooks hang" restart_libvirt
took "the restart"
expect "a still runs" is_active a
expect "a still holds its VF" holds_vf a
expect "libvirt describes a" within 60 virsh dumpxml a
require "thaw" thaw
stop_hard a
stop_hard b
expect "recover" vfpass recover
expect "detach a" vfpass detach a
expect "detach b" vfpass detach b
finish
