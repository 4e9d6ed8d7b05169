# A local user of the guest attacks the files that vfpass writes there: `nobody` keeps trying to open each one while
# the files of the probe and of guest-setup are written.
# covers: src/guest/setup src/guest/agent/include/vfpass/agent/guest_scripts.hpp src/guest/agent/probe_program.cpp src/guest/agent/include/vfpass/agent/guest_scripts.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

# A guest that shares its processor responds slowly.
export AGENT_TIMEOUT=240

# Records every file that it sees, and those that it could open for writing. Uses `true` because a failed redirection
# of `:` would end the shell.
# shellcheck disable=SC2016  # the guest's shell expands it
watcher='cd /
while [ ! -e /tmp/watch/stop ]; do
    for file in /tmp/watch/control /var/lib/vfpass-probe/* /var/lib/vfpass-setup/* /var/lib/vfpass-setup/.* \
        /etc/.*.vfpass-new /etc/*/.*.vfpass-new /etc/nccl.conf /etc/sysctl.d/*; do
        [ -f "$file" ] || continue
        case "$seen " in *" $file "*) ;; *) seen="$seen $file"; echo "$file" >>/tmp/watch/seen ;; esac
        { true >>"$file"; } 2>/dev/null && case "$opened " in *" $file "*) ;; *)
            opened="$opened $file"; echo "$file" >>/tmp/watch/opened ;; esac
    done
done'

# Runs at the lowest priority, because it shares the processor with the agent.
watch() {
    guest_shell train0 "grep -q '^nobody:' /etc/passwd 2>/dev/null ||
            echo 'nobody:x:65534:65534:nobody:/:/bin/sh' >>/etc/passwd
        grep -q '^root:' /etc/passwd || echo 'root:x:0:0:root:/:/bin/sh' >>/etc/passwd
        rm -rf /tmp/watch; mkdir -p /tmp/watch; chmod 777 /tmp/watch
        : >/tmp/watch/control; chmod 666 /tmp/watch/control
        su -s /bin/sh nobody -c '$watcher' >/tmp/watch/said 2>&1 </dev/null &
        renice -n 19 -p \$! >/dev/null"
}

opened() { guest_shell train0 'cat /tmp/watch/opened 2>/dev/null'; }
control_is_open() { [ "$(opened)" = /tmp/watch/control ]; }
seen() { guest_shell train0 'cat /tmp/watch/seen /tmp/watch/said 2>/dev/null'; }

section "a guest with a VF"
install_vfpass
load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 1
ip link set dev "$(pf_netdev 0)" up
start_libvirt
define_guest train0
mapping train0 rail0 "$pf" 'index: 0' 'guest: {address: 192.168.100.10/24, mtu: 9000}'
echo 'nccl: {gid-index: 3, traffic-class: 41, service-level: 0, qps: 16, timeout: 22}' >>"$vms/train0.yaml"
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 400
# Readable by all, as an older vfpass created it, so that the watcher sees the names.
guest_shell train0 'mkdir -p /var/lib/vfpass-probe && chmod 755 /var/lib /var/lib/vfpass-probe'
expect "the watcher of user nobody starts" watch
expect "the watcher opens the control file" wait_until 120 control_is_open
took "the guest's start"

section "copying the probe"
# This guest has no RDMA, which verify finds after it has started the probe.
expect_exit 4 "verify" vfpass verify train0
expect_contains "the watcher saw the probe's file" vfpass-probe- seen
expect_contains "the watcher saw the file while it was written" .new seen
expect_equal "the watcher could not open any file" /tmp/watch/control "$(opened)"
expect_equal "only root has access to the probe" "700 0" \
    "$(guest_shell train0 'stat -c "%a %u" /var/lib/vfpass-probe/vfpass-probe-*')"
took "the section"

section "guest-setup's files"
expect "guest-setup --yes" vfpass guest-setup train0 --timeout 600 --yes
expect_contains "the watcher saw new files" .vfpass-new seen
expect_equal "the watcher could not open any file" /tmp/watch/control "$(opened)"
expect "guest-setup --undo --yes" vfpass guest-setup train0 --timeout 600 --undo --yes
expect_equal "the watcher still could not open any file" /tmp/watch/control "$(opened)"
took "the section"

section "a directory that others can write to"
guest_shell train0 'mkdir /shared && chmod 1777 /shared'
expect_exit 6 "verify refuses the directory" vfpass verify train0 --guest-folder /shared
expect_said "the reason is printed" "can be written by others"
expect_equal "nothing was written there" "" "$(guest_shell train0 'ls /shared')"

section "a probe that was replaced"
# shellcheck disable=SC2016  # the guest's shell expands it
guest_shell train0 'for probe in /var/lib/vfpass-probe/vfpass-probe-*; do
    printf "#!/bin/sh\n: >/tmp/forged\n" >"$probe"; done'
expect_exit 4 "verify" vfpass verify train0
expect_equal "the replaced probe was not run" "" "$(guest_shell train0 'ls /tmp/forged 2>/dev/null')"
guest_shell train0 ': >/tmp/watch/stop'
finish
