# Saved plans: attach, detach and host apply execute the plan that was read before, or refuse it because the state has
# changed since, without any change. And the JSON documents of the commands that change something.
# covers: src/commands/saved_plan.cpp src/commands/change_options.cpp src/commands/all_vms.cpp src/report/result_report.cpp src/commands/plan_command.cpp src/commands/host_apply.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

# document SCHEMA: whether the last JSON output, in /tmp/said.json, matches the schema.
document() { /vfpass/build/tests/lab/validate-json "/vfpass/docs/json/$1.schema.json" /tmp/said.json; }
# says EXIT SCHEMA COMMAND...: runs vfpass --json and checks its exit code and its document.
says() {
    local exit=$1 schema=$2
    shift 2
    vfpass --json "$@" >/tmp/said.json 2>/tmp/said.log
    expect_equal "vfpass $*: exit code" "$exit" "$?"
    expect "vfpass $*: document" document "$schema"
}
unchanged() {
    snapshot_host /tmp/host.after "$pf"
    virsh dumpxml --inactive d1 >/tmp/xml.after
    expect_same_file "$1: the host is unchanged" /tmp/host.before /tmp/host.after
    expect_same_file "$1: the XML is unchanged" /tmp/xml.before /tmp/xml.after
}
note_state() {
    snapshot_host /tmp/host.before "$pf"
    virsh dumpxml --inactive d1 >/tmp/xml.before
}

install_vfpass
load_mlx5
modprobe vfio-pci
pf=$(pf_address 0)
make_vfs "$pf" 4
start_libvirt
vfpass --quiet hook install
define_tiny d1
define_tiny d2
mapping d1 rail0 "$pf" 'index: 1' 'vlan: {id: 100}'
settle d1

section "attach with a saved plan"
expect_exit 3 "plan --output" vfpass plan d1 --output /tmp/attach.json
cp /tmp/attach.json /tmp/said.json
expect "the file matches its schema" document saved-plan
note_state
sed -i 's/id: 100/id: 200/' "$vms/d1.yaml"
says 5 error attach d1 --plan /tmp/attach.json
expect_contains "the error names the difference" "vlan 200" cat /tmp/said.json
unchanged "another mapping"
sed -i 's/id: 200/id: 100/' "$vms/d1.yaml"
virsh desc d1 --config --new-desc changed >/dev/null
says 5 error attach d1 --plan /tmp/attach.json
expect_contains "the error names the XML" "XML is another one" cat /tmp/said.json
virsh desc d1 --config --new-desc '' >/dev/null
says 2 error detach d1 --plan /tmp/attach.json
note_state
vfpass plan d1 --output /tmp/attach.json >/dev/null
says 0 result attach d1 --plan /tmp/attach.json
expect_contains "the VF has its VLAN" "vlan 100" vf_attributes "$(pf_netdev 0)" 1
expect_contains "the document has the steps" "write rail0 into the domain XML" cat /tmp/said.json
says 0 result attach d1
expect_contains "nothing to do" '"changed": false' cat /tmp/said.json

section "detach with a saved plan"
expect_exit 3 "detach --dry-run --output" vfpass detach d1 --dry-run --output /tmp/detach.json
cp /tmp/detach.json /tmp/said.json
expect "the file matches its schema" document saved-plan
note_state
virsh desc d1 --config --new-desc changed >/dev/null
says 5 error detach d1 --plan /tmp/detach.json
virsh desc d1 --config --new-desc '' >/dev/null
unchanged "another XML"
says 0 result detach d1 --plan /tmp/detach.json
expect_equal "no lease is left" "" "$(leases)"

section "host apply with a saved plan"
printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    mtu: 1400\n' "$pf" >/etc/vfpass/host.yaml
expect_exit 3 "host apply --dry-run --output" vfpass host apply --dry-run --output /tmp/host.json
ip link set dev "$(pf_netdev 0)" mtu 1300
sed -i 's/1400/1401/' /etc/vfpass/host.yaml
says 5 error host apply --plan /tmp/host.json
expect_equal "the MTU is as it was" 1300 "$(cat "/sys/class/net/$(pf_netdev 0)/mtu")"
sed -i 's/1401/1400/' /etc/vfpass/host.yaml
says 0 host host apply --plan /tmp/host.json
expect_equal "the MTU is the planned one" 1400 "$(cat "/sys/class/net/$(pf_netdev 0)/mtu")"

section "attach, detach and verify of all VMs"
mapping d2 rail0 "$pf" 'index: 2'
mapping absent rail0 "$pf" 'index: 3'
says 2 all attach --all --dry-run
says 2 all attach --all --stop-on-failure
expect_contains "no VM is begun after the failure" '"begun": false' cat /tmp/said.json
expect_equal "nothing is attached" "" "$(leases)"
says 2 all attach --all
expect_equal "the others are attached" 2 "$(leases | wc -l)"
rm "$vms/absent.yaml"
says 0 all attach --all
expect_contains "a line for each VM" "2 VMs: 2 nothing to do" vfpass attach --all
says 0 all verify --all
expect_contains "no VM runs" '"vms": []' cat /tmp/said.json
says 3 all detach --all --dry-run
says 0 all detach --all
expect_equal "no lease is left" "" "$(leases)"
says 0 all detach --all

section "gc and recover"
says 0 result attach d2
rm "$vms/d2.yaml"
virsh undefine d2 >/dev/null
says 3 plans gc --dry-run
expect_contains "the plan names the domain" '"name": "d2"' cat /tmp/said.json
says 0 result gc
expect_contains "the lease is released" "released lease rail0 of domain d2" cat /tmp/said.json
says 0 plans gc --dry-run
says 0 result recover

finish
