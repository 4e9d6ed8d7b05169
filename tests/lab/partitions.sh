# Partitions of a fabric manager: the stand-in for fmpm (tests/fake/fmpm) has the halves of a board of four stand-in GPUs. A start of a VM
# activates its half and a stop deactivates it, while another VM runs with the other half; the fabric manager refuses, hangs, dies and
# activates another partition; the hook is killed while it waits for it, and QEMU while it runs.
# covers: src/host/fabric src/plan/choose_partition.cpp src/plan/plan_hook.cpp src/plan/device_steps.cpp src/topology/fabric_partitions.cpp
# covers: src/doctor/partition_checks.cpp src/hook tests/fake/fmpm lab/gpu/device
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

fmpm=/usr/local/sbin/fmpm
fabric=$fmpm.d

# active: the numbers of the active partitions, in one line.
active() { [ ! -e "$fabric/active" ] || xargs <"$fabric/active"; }
only_active() { test "$(active)" = "$*"; }
asked_for() { grep -qxF -e "$1" "$fabric/calls"; }
is_ready() {
    leases >/tmp/leases && grep -q "\"$1\"" /tmp/leases && ! grep "\"$1\"" /tmp/leases | grep -qv '"reserved"'
}

# with_fault FAULT: every use of fmpm has this fault from now on.
with_fault() { echo "$1" >"$fabric/fault"; }
without_fault() { rm -f "$fabric/fault"; }
# lacks_client: recover cannot deactivate a partition, because fmpm is missing.
lacks_client() { ! vfpass recover >/tmp/recover.log 2>&1 && grep -q 'fmpm is not installed' /tmp/recover.log; }

# half VM GPU MODULE GPU MODULE: writes the mapping.
half() {
    printf 'version: 1\nvm: %s\ntopology: flat\nnvlink: partition\ngpus:\n' "$1"
    printf '  - {name: gpu%s, pci: "%s", nvlink-module: %s}\n' 0 "$2" "$3" 1 "$4" "$5"
} >"$vms/$1.yaml"

# stops VM: and its hook has done its work.
stops() {
    expect "$1 stops" virsh --quiet destroy "$1"
    expect "its GPUs are ready for the next start" wait_until 60 is_ready "$1"
}

section "the host"
install_vfpass
mapfile -t gpus < <(lspci -D -d 10de: | cut -d' ' -f1)
require "there are four GPUs" test "${#gpus[@]}" = 4
install -D -m 0755 /vfpass/tests/fake/fmpm "$fmpm"
mkdir -p "$fabric"
printf '%s\n' '1 1 2 3 4' '2 1 2' '3 3 4' '4 1' '5 2' '6 3' '7 4' >"$fabric/partitions"
: >"$fabric/calls"
require "the stand-in lists its partitions" "$fmpm" -l
half train0 "${gpus[0]}" 1 "${gpus[1]}" 2
half train1 "${gpus[2]}" 3 "${gpus[3]}" 4
start_libvirt
require "libvirtd starts" virsh list
define_guest train0
define_guest train1
expect "hook install" vfpass hook install

section "check, doctor and attach"
expect "check accepts the mapping" vfpass check train0
expect_said "it names the partition" "partition 2 of the fabric manager holds exactly these GPUs"
expect_said "a start activates it" "each start activates it"
vfpass doctor --json >/tmp/doctor.json
expect_contains "doctor has asked the fabric manager" "partition 3 of the fabric manager" \
    jq -r '.findings[] | select(.key == "gpu-nvlink" and .subject == "train1").seen' /tmp/doctor.json
half train0 "${gpus[0]}" 1 "${gpus[1]}" 3
expect_exit 2 "GPUs that are no partition are refused" vfpass attach train0
half train0 "${gpus[0]}" 1 "${gpus[1]}" 2
expect "attach train0" vfpass attach train0
expect "attach train1" vfpass attach train1
expect_equal "attach activates nothing" "" "$(active)"

section "starts and stops"
expect "train1 starts" virsh --quiet start train1
expect_equal "with its half of the board" 3 "$(active)"
expect "train0 starts" virsh --quiet start train0
expect_equal "with the other half" "2 3" "$(active)"
stops train0
expect_equal "its half is deactivated, the other one is not" 3 "$(active)"
expect "no change but these was asked for" diff "$fabric/calls" <(printf '%s\n' '-a 3' '-a 2' '-d 2')

section "a start that cannot have its partition"
for fault in refuses dies shared gone older hangs; do
    with_fault "$fault"
    refuse "train0 does not start: $fault" virsh start train0
    without_fault
    expect "what is left is recovered" vfpass recover
    expect_equal "only the running VM has a partition" 3 "$(active)"
done
with_fault other
refuse "train0 does not start if another partition becomes active" virsh start train0
without_fault
expect_said "it is named" "run \`fmpm -d 4\`"
expect "what is left is recovered" vfpass recover
expect_equal "it stays active: nobody knows who activated it" "3 4" "$(active)"
expect "it is deactivated by hand" "$fmpm" -d 4
with_fault dies-after
expect "a client that dies after its change: the list tells that it is made" virsh --quiet start train0
expect_equal "it is" "2 3" "$(active)"
stops train0
without_fault
expect_equal "and deactivated" 3 "$(active)"

section "partitions that somebody has activated by hand"
expect "one of train0's GPUs is activated" "$fmpm" -a 4
refuse "train0 does not start" virsh start train0
expect "what is left is recovered" vfpass recover
expect_equal "the partition is active as before" "3 4" "$(active)"
expect "it is deactivated" "$fmpm" -d 4
expect "that of train0 is activated" "$fmpm" -a 2
expect "train0 starts" virsh --quiet start train0
stops train0
expect_equal "the stop leaves it active" "2 3" "$(active)"
expect "it is deactivated" "$fmpm" -d 2

section "a hook that is killed while it waits for the fabric manager"
: >"$fabric/calls"
with_fault hangs-after
virsh start train0 >/tmp/start.log 2>&1 &
starting=$!
expect "the partition is activated" wait_until 60 only_active 2 3
without_fault
expect "the hook is killed" pkill -KILL -f 'qemu.d/vfpass train0 '
wait "$starting"
expect "the start has failed" grep -q error: /tmp/start.log
expect "recover" vfpass recover
expect_equal "no partition of a stopped VM is active" 3 "$(active)"
expect "the next start" virsh --quiet start train0
expect_equal "has its partition" "2 3" "$(active)"

section "a stop that cannot deactivate it"
: >"$fabric/calls"
with_fault refuses
expect "train0 stops" virsh --quiet destroy train0
expect "the hook has tried" wait_until 60 asked_for '-d 2'
refuse "recover cannot, either" vfpass recover
expect_said "it names the client" fmpm
refuse "nor does the VM start" virsh start train0
without_fault
expect "then recover does it" vfpass recover
expect_equal "it is deactivated" 3 "$(active)"

section "a stop while the client is missing"
expect "train0 starts" virsh --quiet start train0
expect_equal "with its partition" "2 3" "$(active)"
mv "$fmpm" "$fmpm.away"
expect "train0 stops" virsh --quiet destroy train0
expect "recover names what is missing" wait_until 60 lacks_client
refuse "nor does the VM start" virsh start train0
mv "$fmpm.away" "$fmpm"
expect_equal "it is still active" "2 3" "$(active)"
expect "then recover deactivates it" vfpass recover
expect "it is deactivated" only_active 3

section "QEMU is killed"
expect "train0 starts" virsh --quiet start train0
expect_equal "with its partition" "2 3" "$(active)"
expect "QEMU is killed" pkill -KILL -f 'qemu-system.* guest=train0,'
expect "the partition is deactivated" wait_until 60 only_active 3
expect "its GPUs are ready for the next start" wait_until 60 is_ready train0

section "the GPUs go back"
stops train1
expect_equal "no partition is active" "" "$(active)"
expect "detach train0" vfpass detach train0
expect "detach train1" vfpass detach train1
expect "no lease is left" no_lease
finish
