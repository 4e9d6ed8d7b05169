# `domain-settings:` with a real libvirt and a real guest: a host with two NUMA nodes, and a guest without cells. apply
# adds cells, memory and vCPUs on the VFs' nodes, the guest's kernel has them, and detach removes everything.
# covers: src/domain/settings src/domain/*edit* src/domain/xml_source.* src/commands/attach_input.* src/plan/lease_changes.* src/commands/attach_input.cpp src/commands/diagnose_command.cpp
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

# The guest is slow: its two processors are emulated in an emulated machine.
export AGENT_TIMEOUT=300

# mapping LINE...: writes a mapping with a VF of each PF and LINEs.
mapping() {
    printf 'version: 1\nvm: train0\nvfs:\n' >"$vms/train0.yaml"
    printf '  - {name: a0, pf: {pci: "%s"}}\n  - {name: b0, pf: {pci: "%s"}}\n' "$one" "$other" \
        >>"$vms/train0.yaml"
    printf '%s\n' "$@" >>"$vms/train0.yaml"
}

# lacks PATTERN FILE
lacks() { ! grep -qE "$1" "$2"; }

# diagnosed FILTER: what `vfpass diagnose` reports; it fails if there is a problem, such as a unit that the lab does not enable.
diagnosed() { { vfpass diagnose train0 --json || test $? = 1; } | jq -r "$1"; }
# The domain settings that it names, in its order.
named_settings='[.items[] | select(.source == "vfpass plan train0").subject] | join(" ")'

inactive() { virsh dumpxml --inactive --security-info train0; }

# node_of NAME: the NUMA node of this entry's device according to the guest's kernel.
node_of() {
    local address
    address=$(vfpass topo --vm train0 --json |
        jq -r --arg name "$1" '.functions[] | select(.entry == $name) | .address')
    guest_shell train0 "cat /sys/bus/pci/devices/$address/numa_node" | tr -d '[:space:]'
}

section "a host with two nodes, and a guest without cells"
install_vfpass
load_mlx5
one=$(pf_address 0) other=$(pf_address 1)
# No check concerns the host's driver for VFs, which takes seconds to probe each.
for pf in "$one" "$other"; do
    echo 0 >"$pci_devices/$pf/sriov_drivers_autoprobe"
    make_vfs "$pf" 2
done
start_libvirt
guest_xml train0 --memory 512 | sed 's|<vcpu>1</vcpu>|<vcpu>2</vcpu>|' >/tmp/two-vcpus.xml
virsh --quiet define /tmp/two-vcpus.xml
settle train0
inactive >/tmp/xml.before
expect "hook install" vfpass hook install

section "show: settings are reported and nothing is changed"
mapping 'topology: flat'
expect_exit 3 "plan" vfpass plan train0
expect_said "plan shows the cells" "guest-cells: 2 NUMA cells"
expect_said "plan shows the reason" "because the VM's devices sit on host nodes 0-1"
expect_said "plan shows the diff" "further change with \`domain-settings: apply\`"
expect "attach" vfpass attach train0
expect_said "attach reports a setting that it did not make" "domain setting not applied: guest-cells"
inactive >/tmp/xml.show
expect "the domain has no such settings" lacks '<numatune>|<vcpupin|<cell ' /tmp/xml.show
expect_equal "diagnose names the missing settings in plan's order" "$(vfpass plan train0 --json | jq -r '[.settings[].name] | join(" ")')" \
    "$(diagnosed "$named_settings")"
expect_equal "the cells are the first of them" guest-cells "$(diagnosed "$named_settings" | cut -d' ' -f1)"
expect_equal "as a warning, with the command that has the reason" "warning run \`vfpass plan train0\` for the reason and the XML" \
    "$(diagnosed '.items[] | select(.subject == "guest-cells") | "\(.rank) \(.remedy)"')"
expect_equal "they come before the verification that never ran" true "$(diagnosed '[.items[].source] |
    index("vfpass plan train0") < index("vfpass verify train0")')"
expect "detach" vfpass detach train0
inactive >/tmp/xml.after
expect_same_file "the XML is restored" /tmp/xml.before /tmp/xml.after

section "apply"
mapping 'domain-settings: apply'
expect "attach" vfpass attach train0
inactive >/tmp/xml.apply
for element in '<numatune>' "<vcpupin vcpu='0' cpuset='0'/>" "<vcpupin vcpu='1' cpuset='1'/>" \
    "<cell id='0' cpus='0'" "<cell id='1' cpus='1'"; do
    expect "the domain has $element" grep -qF "$element" /tmp/xml.apply
done
expect "the XML is valid" virsh define --validate /tmp/xml.apply
expect "a second attach changes nothing" vfpass attach train0
expect_said "attach reports that there is nothing to do" "nothing to do"
settle train0
expect "attach changes nothing after libvirt has parsed the XML again" vfpass attach train0
expect_said "attach reports that there is nothing to do" "nothing to do"
expect "status reports no drift" vfpass status train0
expect_equal "diagnose names no setting" "" "$(diagnosed "$named_settings")"

section "the guest"
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 600
expect_equal "a0 is on node 0" 0 "$(node_of a0)"
expect_equal "b0 is on node 1" 1 "$(node_of b0)"
expect_equal "the guest has two nodes" "0-1" \
    "$(guest_shell train0 'cat /sys/devices/system/node/online' | tr -d '[:space:]')"
expect "the guest shuts down" shut_down_guest train0

section "detach"
expect "detach" vfpass detach train0
inactive >/tmp/xml.after
expect_same_file "the XML is restored" /tmp/xml.before /tmp/xml.after
expect "no lease is left" no_lease

section "settings that the administrator changed after attach"
expect "attach" vfpass attach train0
virsh --quiet vcpupin --config train0 0 0-1
expect "detach" vfpass detach train0
inactive >/tmp/xml.after
expect "detach keeps the changed pinning" grep -qF "<vcpupin vcpu='0' cpuset='0-1'/>" /tmp/xml.after
expect "detach removes the cells" lacks "<cell id='0'" /tmp/xml.after

finish
