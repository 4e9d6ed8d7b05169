# `domain-settings:` with real libvirt and a real guest: a host with two NUMA nodes, a guest without cells. apply gives
# it cells, memory and vCPUs on its VFs' nodes, the guest's kernel sees them, and detach takes everything out again.
# covers: src/settings src/domain/*edit* src/domain/splice.* src/cli/domain_settings.* src/plan/domain_settings.*
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

# The guest is slow: two processors are emulated in an emulated machine.
export AGENT_TIMEOUT=300

# mapping LINE...: a VF of each PF, and further lines.
mapping() {
    printf 'version: 1\nvm: train0\nvfs:\n' >"$vms/train0.yaml"
    printf '  - {name: a0, pf: {pci: "%s"}}\n  - {name: b0, pf: {pci: "%s"}}\n' "$one" "$other" \
        >>"$vms/train0.yaml"
    printf '%s\n' "$@" >>"$vms/train0.yaml"
}

# lacks PATTERN FILE
lacks() { ! grep -qE "$1" "$2"; }

inactive() { virsh dumpxml --inactive --security-info train0; }

# node_of NAME: the NUMA node that the guest's kernel shows for this entry's device.
node_of() {
    local address
    address=$(vfpass topo --vm train0 --json |
        jq -r --arg name "$1" '.functions[] | select(.entry == $name) | .address')
    guest_shell train0 "cat /sys/bus/pci/devices/$address/numa_node" | tr -d '[:space:]'
}

section "a host with two nodes, and a guest without cells"
install_vfpass
load_standin
one=$(pf_address 0) other=$(pf_address 1)
make_vfs "$one" 2
make_vfs "$other" 2
start_libvirt
guest_xml train0 --memory 512 | sed 's|<vcpu>1</vcpu>|<vcpu>2</vcpu>|' >/tmp/two-vcpus.xml
virsh --quiet define /tmp/two-vcpus.xml
settle train0
inactive >/tmp/xml.before
expect "hook install" vfpass hook install

section "show: settings are named and nothing is changed"
mapping 'topology: flat'
expect_exit 3 "plan" vfpass plan train0
expect_said "the cells" "guest-cells: 2 NUMA cells"
expect_said "the reason" "because the VM's devices sit on host nodes 0-1"
expect_said "the diff" "further change with \`domain-settings: apply\`"
expect "attach" vfpass attach train0
expect_said "attach names them" "domain setting not made: guest-cells"
inactive >/tmp/xml.show
expect "the domain has none of them" lacks '<numatune>|<vcpupin|<cell ' /tmp/xml.show
expect "detach" vfpass detach train0
inactive >/tmp/xml.after
expect_same_file "the XML is as it was" /tmp/xml.before /tmp/xml.after

section "apply"
mapping 'domain-settings: apply'
expect "attach" vfpass attach train0
inactive >/tmp/xml.apply
for element in '<numatune>' "<vcpupin vcpu='0' cpuset='0'/>" "<vcpupin vcpu='1' cpuset='1'/>" \
    "<cell id='0' cpus='0'" "<cell id='1' cpus='1'"; do
    expect "the domain has $element" grep -qF "$element" /tmp/xml.apply
done
expect "the XML is valid" virsh define --validate /tmp/xml.apply
expect "attach again has nothing to do" vfpass attach train0
expect_said "it says so" "nothing to do"
settle train0
expect "also after libvirt has read it again" vfpass attach train0
expect_said "it says so" "nothing to do"
expect "status sees no drift" vfpass status train0

section "the guest"
expect "virsh start" virsh start train0
expect "its agent answers" wait_for_agent train0 600
expect_equal "a0 is on node 0" 0 "$(node_of a0)"
expect_equal "b0 is on node 1" 1 "$(node_of b0)"
expect_equal "it has two nodes" "0-1" \
    "$(guest_shell train0 'cat /sys/devices/system/node/online' | tr -d '[:space:]')"
expect "it shuts down" shut_down_guest train0

section "detach"
expect "detach" vfpass detach train0
inactive >/tmp/xml.after
expect_same_file "the XML is as it was" /tmp/xml.before /tmp/xml.after
expect "no lease is left" no_lease

section "what the administrator has changed since stays"
expect "attach" vfpass attach train0
virsh --quiet vcpupin --config train0 0 0-1
expect "detach" vfpass detach train0
inactive >/tmp/xml.after
expect "the changed pinning stays" grep -qF "<vcpupin vcpu='0' cpuset='0-1'/>" /tmp/xml.after
expect "the cells are gone" lacks "<cell id='0'" /tmp/xml.after

finish
