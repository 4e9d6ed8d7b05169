# restricted_agent.sh RELEASE: a guest whose agent blocks the same commands as RHEL's package. vfpass names all
# commands that it needs, changes nothing, and the guest can still be shut down.
# covers: src/guest/agent/agent.cpp lab/image
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

release=$1
export AGENT_TIMEOUT=240
agent_timeout=600
blocked="guest-exec, guest-exec-status, guest-file-open, guest-file-write, guest-file-close"

# on_disk PATH: whether PATH exists on the disk of the guest, which is off.
on_disk() { ! debugfs -R "stat $1" /var/lib/lab/train0.raw 2>&1 | grep -q 'File not found'; }

section "a guest with $release and RHEL's agent configuration"
install_vfpass
load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 1
ip link set dev "$(pf_netdev 0)" up
start_libvirt
require "the guest is defined" define_real_guest train0 "$release" networkd --restricted-agent
mapping train0 rail0 "$pf" 'index: 0' 'guest: {address: 192.168.100.10/24, mtu: 9000}'
expect "hook install" vfpass hook install
require "attach" vfpass attach train0
require "virsh start" virsh start train0
require "the guest's agent answers" wait_for_agent train0 $agent_timeout
took "the guest's start"
expect_contains "the agent refuses guest-exec" "has been disabled" refused_command train0

section "guest-setup and verify"
expect_exit 6 "guest-setup" vfpass guest-setup train0 --yes
expect_said "the error names every blocked command" "does not allow $blocked"
expect_said "the remedy says how to allow them" "/etc/sysconfig/qemu-ga"
expect_exit 6 "guest-setup --undo" vfpass guest-setup train0 --undo --yes
expect_exit 6 "verify" vfpass verify train0
expect_said "the error names every blocked command" "does not allow $blocked"
expect_said "the remedy says how to allow them" "/etc/sysconfig/qemu-ga"

section "the guest's disk"
expect "the guest shuts down" shut_down_guest train0 900
expect "the disk image can be converted" qemu-img convert -O raw /var/lib/lab/train0.qcow2 /var/lib/lab/train0.raw
expect "the disk image is the guest's" on_disk /etc/sysconfig/qemu-ga
for path in /var/lib/vfpass-setup /var/lib/vfpass-probe /etc/systemd/network/10-vfpass-rail0.network; do
    refuse "$path was not created" on_disk "$path"
done
finish
