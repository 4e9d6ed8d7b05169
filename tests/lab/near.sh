# `pf: {near: gpu0}` on a real PCI tree: the PF that is chosen, the reason, and that attach fixes the choice: a PF at
# the same distance that becomes preferable later is no drift.
# covers: src/topology/nearest_pf.cpp src/topology/include/vfpass/topology/nearest_pf.* src/plan/resolve_near.cpp src/commands/subject.* src/commands/subject.cpp
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh

gpu=0000:03:00.0 second_gpu=0000:04:00.0

# near NAME=GPU...: writes a mapping of VFs with these names near these entries of `gpus:`.
near() {
    local entry
    printf 'version: 1\nvm: train0\ngpus:\n' >"$vms/train0.yaml"
    printf '  - {name: gpu0, pci: "%s"}\n  - {name: gpu1, pci: "%s"}\nvfs:\n' "$gpu" "$second_gpu" \
        >>"$vms/train0.yaml"
    for entry in "$@"; do
        printf '  - {name: %s, pf: {near: %s}}\n' "${entry%%=*}" "${entry#*=}" >>"$vms/train0.yaml"
    done
}

# pfs: the PF of each VF that is leased to train0, ordered by entry name.
pfs() {
    { vfpass status --json || test $? = 3; } | jq -r '.leases[] |
        select(.kind == "vf" and .domain.name == "train0") | .entry + "@" + .pf' | sort | xargs
}

has_no_lease() { test "$(pfs)" = ""; }

section "a host with two PFs at the same distance"
install_vfpass
load_mlx5
one=$(pf_address 0) other=$(pf_address 1)
# No check concerns the host's driver for VFs, which takes seconds to probe each.
for pf in "$one" "$other"; do
    echo 0 >"$pci_devices/$pf/sriov_drivers_autoprobe"
    make_vfs "$pf" 4
done
start_libvirt
define_guest train0
settle train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.before

section "check and plan"
near rail0=gpu0 rail1=gpu1 rail2=gpu0
expect "check accepts the mapping" vfpass check train0
expect_exit 3 "plan shows the steps" vfpass plan train0
expect_said "plan names the nearest PF" "rail0: nearest to gpu0 is PF $one"
expect_said "plan names the PF at the same distance" "equally near: $other"

section "attach"
expect "attach" vfpass attach train0
expect_equal "the entries are distributed over the PFs" "rail0@$one rail1@$other rail2@$one" "$(pfs)"
expect "status reports no drift" vfpass status train0
vfpass status --json >/tmp/status.first
expect_contains "a second attach changes nothing" "nothing to do" vfpass attach train0
vfpass status --json >/tmp/status.second
expect_same_file "the leases are unchanged" /tmp/status.first /tmp/status.second

section "attached entries keep their PF when the other PF becomes preferable"
ip link set dev "$(pf_netdev 1)" up
expect "the other PF has a link" wait_until 30 carrier_is 1 "$(pf_netdev 1)"
expect "status reports no drift" vfpass status train0
expect_contains "attach changes nothing" "nothing to do" vfpass attach train0
expect_equal "the entries keep their PFs" "rail0@$one rail1@$other rail2@$one" "$(pfs)"
near rail0=gpu0 rail1=gpu1 rail2=gpu0 rail3=gpu0
expect_exit 3 "a new entry is drift" vfpass status train0
expect "attach" vfpass attach train0
expect_equal "the new entry gets the PF that is up" "rail0@$one rail1@$other rail2@$one rail3@$other" "$(pfs)"

section "the preferred PF has no VF left"
expect "detach" vfpass detach train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the XML is restored" /tmp/xml.before /tmp/xml.after
define_guest filler
{
    printf 'version: 1\nvm: filler\nvfs:\n'
    for index in 0 1 2 3; do
        printf '  - {name: rail%s, pf: {pci: "%s"}}\n' "$index" "$other"
    done
} >"$vms/filler.yaml"
expect "another VM gets all of its VFs" vfpass attach filler
near rail0=gpu0 rail1=gpu0
expect "attach" vfpass attach train0
expect_equal "both VFs come from the other PF" "rail0@$one rail1@$one" "$(pfs)"
expect "detach" vfpass detach train0

section "a GPU that does not exist"
near rail0=gpu0
sed -i 's/0000:03:00.0/0000:7f:00.0/' "$vms/train0.yaml"
expect_exit 2 "attach refuses" vfpass attach train0
expect_said "the error names the missing function" "this host has no PCI function 0000:7f:00.0"
expect "train0 has no lease" has_no_lease
finish
