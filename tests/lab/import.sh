# A hand-made VM moves in and out while it runs: `vfpass import` writes its mapping, attach takes its hostdev over in place, verify passes,
# and detach --keep leaves it again. The guest does not notice.
# covers: src/plan/adopt_element.cpp src/domain/adopted_elements.* src/report/kept_devices.cpp src/commands/detach_command.cpp
# covers: src/commands/import* src/plan/import* src/report/import_report.cpp src/config/configuration.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

verify_json() { vfpass verify train0 --json --bytes 64 --iterations 1000 --no-tools --relaxed-ordering off 2>/tmp/verify.log; }

section "a running VM with a hand-made hostdev on a VF with MAC and VLAN"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
ip link set dev "$netdev" up
modprobe vfio-pci
mac=52:54:00:12:34:02
ip link set dev "$netdev" vf 2 mac "$mac" vlan 42
vf=$(vf_of "$pf" 2)
start_libvirt
expect "hook install" vfpass hook install
define_with train0 "$vf" --rdma
settle train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.before
snapshot_host /tmp/host.stopped "$pf"
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 400
expect "the guest's driver is bound to the VF" wait_until 120 in_guest train0 "$mac"
place=$(in_guest train0 "$mac")
# A process of the guest, which no attach or detach may end.
start_marker() { guest_shell train0 'sleep 86400 >/dev/null 2>&1 </dev/null & echo $! >/run/marker'; }
expect "a process is started in the guest" start_marker
expect_contains "the guest's RDMA device is up" uverbs0 rdma_up train0 10.99.0.1
snapshot_host /tmp/host.before "$pf"

# Of the netdev in the guest: a driver that was unbound or a device that was unplugged gives it another index. Of the process: its ID
# and the time at which it started (proc(5)).
index_in_guest() {
    guest_shell train0 "cat \$(dirname $place)/ifindex \$(dirname $place)/flags
        set -- \$(cat /proc/\$(cat /run/marker)/stat) && echo process \$1 since \${22}"
}
index=$(index_in_guest)
expect_contains "the process runs" "process" echo "$index"
undisturbed() {
    expect_equal "$1: the guest has the VF at the same place" "$place" "$(in_guest train0 "$mac")"
    expect_equal "$1: its interface is the same and up, and its process runs" "$index" "$(index_in_guest)"
    snapshot_host /tmp/host.after "$pf"
    expect_same_file "$1: the host is unchanged" /tmp/host.before /tmp/host.after
}
xml_restored() {
    virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
    expect_same_file "$1: the XML is restored" /tmp/xml.before /tmp/xml.after
    refuse "$1: the running domain has no metadata" grep -q vfpass <(virsh dumpxml train0)
    expect "$1: no lease" no_lease
}
# adopting [LINE...]: a mapping with `adopt: true` for the VF.
adopting() {
    mapping train0 rail0 "$pf" 'index: 2' 'adopt: true' "$@"
    echo 'topology: flat' >>"$vms/train0.yaml"
}

section "without the word the VM is not touched"
mapping train0 rail0 "$pf" 'index: 2'
expect_exit 5 "attach is refused" vfpass attach train0
expect_said "the error names the hostdev" "that vfpass did not create"
expect_said "the remedy names the word" "adopt: true"
adopting 'vlan: {id: 100}'
expect_exit 5 "another VLAN is refused while the guest runs" vfpass attach train0
expect_said "the error has the VF's VLAN" "vlan"
mapping train0 rail0 "$pf" 'index: 2' 'adopt: true'
expect_exit 2 "check refuses a mirrored tree" vfpass check train0
undisturbed "refused"
xml_restored "refused"

section "import writes the mapping"
rm "$vms/train0.yaml"
expect "import" vfpass import train0
expect_said "the mapping takes the device over" "adopt: true"
expect_said "it has the VF's MAC" "mac: \"$mac\""
expect_said "and its VLAN" "vlan: {id: 42}"
expect "nothing is written without the word" test ! -e "$vms/train0.yaml"
expect "import --write" vfpass import train0 --write
expect_contains "the file has the device" "index: 2" cat "$vms/train0.yaml"
expect_exit 2 "a second import does not replace it" vfpass import train0 --write
undisturbed "imported"
xml_restored "imported"

section "attach takes the hostdev over"
expect "check accepts the mapping" vfpass check train0
expect_exit 3 "plan shows the steps" vfpass plan train0
refuse "plan plugs nothing" grep -qE "plug|bind|unbind" <(vfpass plan train0)
expect "attach" vfpass attach train0
undisturbed "attached"
expect "the lease is running" eval 'leases | grep -q running'
expect_contains "the running domain has our metadata" vfpass virsh dumpxml train0
expect "a second attach changes nothing" vfpass attach train0
expect_said "it says so" "nothing to do"
expect "status reports no drift" vfpass status train0
expect_exit 2 "detach --live is refused" vfpass detach --live train0
verified 0 "verify passes"
seen device-host passed "on vfio-pci, open in process"
expect_equal "the data is correct, and the host has counted it" "passed passed" \
    "$(finding data-host result) $(finding counters result)"
undisturbed "verified"

section "a restart goes through the hook"
virsh destroy train0 >/dev/null
expect "the lease is reserved" wait_until 20 eval 'leases | grep -q reserved'
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 400
expect "the guest has the VF with its MAC" wait_until 120 in_guest train0 "$mac"
expect_contains "the VLAN is set" "vlan 42" vf_attributes "$netdev" 2
expect "a process is started in the guest" start_marker
expect_contains "the guest's RDMA device is up" uverbs0 rdma_up train0 10.99.0.1
index=$(index_in_guest)

section "detach leaves the guest alone"
expect "detach" vfpass detach train0
undisturbed "detached"
xml_restored "detached"

section "in again, and out with --keep"
expect "attach" vfpass attach train0
expect_exit 3 "--dry-run shows the steps" vfpass detach --keep --dry-run train0
vfpass --json detach --keep train0 >/tmp/kept.json
expect_contains "JSON has the commands" "vf 2 mac $mac" jq -r '.kept.commands[]' /tmp/kept.json
expect_contains "JSON has the unit" "Type=oneshot" jq -r .kept.unit /tmp/kept.json
undisturbed "kept"
xml_restored "kept"
jq -r '.kept.commands[]' /tmp/kept.json >/tmp/kept.sh
expect "the commands run" sh -e /tmp/kept.sh
undisturbed "after the commands"

section "the VM starts without vfpass"
on_its_driver() { test "$(driver_of "$vf")" = mlx5_core; }
virsh destroy train0 >/dev/null
expect "libvirt gives the VF back to its driver" wait_until 60 on_its_driver
expect "virsh start" virsh start --paused train0
expect_equal "libvirt has bound the VF" vfio-pci "$(driver_of "$vf")"
expect_contains "it has its VLAN" "vlan 42" vf_attributes "$netdev" 2
expect "no lease" no_lease

section "--keep of a device that attach added"
virsh destroy train0 >/dev/null
expect "libvirt gives the VF back to its driver" wait_until 60 on_its_driver
mapping train0 rail1 "$pf" 'index: 3' 'vlan: {id: 43}'
expect "attach" vfpass attach train0
before=$(virsh dumpxml --inactive train0 | grep -A4 "ua-vfpass-rail1'" | grep "bus=")
expect "detach --keep" vfpass detach --keep train0
expect_equal "the device stays at its place" "$before" \
    "$(virsh dumpxml --inactive train0 | grep -A4 "ua-kept-rail1'" | grep "bus=")"
refuse "nothing of vfpass is in the XML" grep -q vfpass <(virsh dumpxml --inactive train0)
expect_contains "the VLAN is set" "vlan 43" vf_attributes "$netdev" 3
expect "no lease" no_lease
expect "the VM starts without vfpass" virsh start train0
expect_equal "libvirt has bound the VF" vfio-pci "$(driver_of "$(vf_of "$pf" 3)")"

section "--keep while the VM runs, and in again"
virsh destroy train0 >/dev/null
mapping train0 rail2 "$pf" 'index: 1' 'vlan: {id: 44}'
expect "attach" vfpass attach train0
expect "virsh start" virsh start train0
expect "detach --keep" vfpass detach --keep train0
expect_contains "the running domain has the earlier alias" "ua-vfpass-rail2" virsh dumpxml train0
mapping train0 rail2 "$pf" 'index: 1' 'adopt: true'
echo 'topology: flat' >>"$vms/train0.yaml"
refuse "plan plugs nothing" grep -qE "plug|bind|unbind" <(vfpass plan --no-xml train0)
expect "attach takes it over in the running VM" vfpass attach train0
expect "the lease is running" eval 'leases | grep -q running'
expect "status reports no drift" vfpass status train0
virsh destroy train0 >/dev/null
expect "virsh start" virsh start train0
expect_contains "the VLAN is set" "vlan 44" vf_attributes "$netdev" 1
expect "status reports no drift after the restart" vfpass status train0
expect "detach" vfpass detach train0

finish
