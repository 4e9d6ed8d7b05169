# A device whose reset fails goes into quarantine: no VM gets it until it is released, not even after a reset that works. The record of the
# ended lease names reset, attributes and firmware, and is sealed. A stand-in GPU whose memory survives a reset goes into quarantine, too.
# covers: src/host/drivers/memory_canary.cpp src/apply/device_records.cpp src/apply/quarantine_places.cpp src/state/hand_over_table.cpp src/commands/quarantine_command.cpp
# covers: src/report/quarantine_report.cpp src/host/*/*reset*
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

install_vfpass
load_mlx5
require "the card's RDMA device has its firmware" modprobe mlx5_ib
pf=$(pf_address 0) gpu=$(lspci -D -d 10de: | head -n 1 | cut -d' ' -f1)
make_vfs "$pf" 2
start_libvirt
vfpass hook install
define_tiny a
define_tiny b
mapping a rail0 "$pf" 'index: 0'
vf=$(vf_of "$pf" 0)

# Every write to this file fails with ENOSPC, as one that the kernel refuses.
break_reset() { mount --bind /dev/full "$pci_devices/$vf/reset"; }
repair_reset() { umount "$pci_devices/$vf/reset"; }
in_quarantine() { vfpass quarantine list --json | jq -e ".devices[] | select(.device == \"$1\")"; }
# record FILTER [DEVICE]: of the newest record of the device's leases; the VF's by default.
record() { vfpass quarantine records "${2:-$vf}" --json | jq -r ".records[0] | $1"; }
is_reserved() { test "$(lease_state "$1")" = reserved; }

section "a reset that works"
expect "attach a" vfpass attach a
expect "a starts" start_paused a
stop_hard a
expect "the lease is returned" wait_until 60 is_reserved a
expect_contains "no device is in quarantine" "no device is in quarantine" vfpass quarantine list
expect "a starts again" start_paused a

section "a reset that fails"
require "the VF's reset fails" break_reset
stop_hard a
expect "the VF is in quarantine" wait_until 60 in_quarantine "$vf"
expect_contains "with the kernel's reason" "its reset failed: $vf" vfpass quarantine list
expect_contains "vf list shows it" "its reset failed" jq -r ".vfs[] | select(.address == \"$vf\").quarantine" <(vfpass vf list --json)
expect_equal "doctor warns of it" warning "$(vfpass doctor --json | jq -r '[.findings[] | select(.key == "quarantine").result] | unique | join(" ")')"
refuse "recover cannot reset it, either" vfpass recover
require "the VF can be reset again" repair_reset
expect "recover resets it" vfpass recover
expect "a reset that works does not end the quarantine" in_quarantine "$vf"
refuse "a does not start" start_paused a
expect_said "the reason is printed" "in quarantine since"
expect_said "the remedy is printed" "vfpass quarantine release $vf"

section "the end of its lease"
expect "detach a is possible" vfpass detach a
expect_equal "the record has the VM" a "$(record .domain.name)"
expect_equal "it has the reset that worked" "null" "$(record .reset.failure)"
expect_contains "by the kernel's method" flr record '.reset.methods[]'
expect_equal "the attributes were read back" object "$(record '.settings | type')"
expect_equal "the firmware is that of the card" "$(cat "$pci_devices/$pf"/infiniband/*/fw_ver)" "$(record .firmware)"
expect_equal "it is sealed" true "$(record .sealed)"

section "other VMs"
# Two mappings with the same index are a mistake of their own.
mv "$vms/a.yaml" /tmp/a.yaml
mapping b rail0 "$pf" 'index: 0'
refuse "b does not get it by its index" vfpass attach b
expect_said "the reason is printed" "in quarantine since"
mapping b rail0 "$pf" 'index: auto'
expect "attach b" vfpass attach b
expect_equal "b has the other VF" "$(vf_of "$pf" 1)" "$(vfpass status --json | jq -r '.leases[].vf')"
expect "detach b" vfpass detach b

section "the release"
expect_contains "release" "VMs can have it again" vfpass quarantine release "$vf"
expect_exit 2 "there is nothing to release any more" vfpass quarantine release "$vf"
rm "$vms/b.yaml"
mv /tmp/a.yaml "$vms/a.yaml"
expect "attach a" vfpass attach a
expect "a starts" start_paused a
stop_hard a
expect "the lease is returned" wait_until 60 is_reserved a
expect "detach a" vfpass detach a

section "the memory of a GPU"
expect_equal "the check is off by default" "" "$(ls /run/vfpass/gpu-memory-check 2>/dev/null)"
printf 'version: 1\ngpu-memory-check: true\n' >/etc/vfpass/host.yaml
expect "host apply turns it on" vfpass host apply
printf 'version: 1\nvm: g\ntopology: flat\ngpus:\n  - {name: gpu0, pci: "%s"}\n' "$gpu" >"$vms/g.yaml"
define_tiny g
one_run() {
    expect "attach g" vfpass attach g
    expect "g starts" start_paused g
    stop_hard g
}
one_run
expect "its lease is returned" wait_until 60 is_reserved g
expect "detach g" vfpass detach g
expect_equal "a reset clears the memory" gone "$(record .reset.memory "$gpu")"
refuse "the GPU is not in quarantine" in_quarantine "$gpu"
# The kernel accepts the write, and nothing is reset.
: >/tmp/nothing
require "the GPU's reset does nothing" mount --bind /tmp/nothing "$pci_devices/$gpu/reset"
one_run
expect "the GPU is in quarantine" wait_until 60 in_quarantine "$gpu"
expect_contains "with the reason" "its memory survived the reset" vfpass quarantine list
require "the GPU can be reset again" umount "$pci_devices/$gpu/reset"
expect "detach g" vfpass detach g
refuse "no VM gets it" vfpass attach g
expect_said "the reason is printed" "its memory survived the reset"
expect "no lease" no_lease
finish
