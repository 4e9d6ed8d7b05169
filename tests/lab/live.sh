# Running domains: plug and unplug with libvirt's events, after asking the guest's agent; a changed mapping, gc, and
# a host that is restored at the end.
# covers: src/libvirt src/plan/lease_changes.* src/domain/place_devices.cpp src/commands/attach_command.cpp src/commands/detach_command.cpp
# covers: src/commands/gc_command.cpp src/guest/agent/guest_scripts.cpp src/plan/unused_leases.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

section "a running guest with one spare root port"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
start_libvirt
cat >/tmp/port.xml <<'XML'
<controller type='pci' index='1' model='pcie-root-port'>
  <address type='pci' domain='0x0000' bus='0x00' slot='0x12' function='0x0'/>
</controller>
XML
define_guest train0 --device /tmp/port.xml
settle train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.before
snapshot_host /tmp/host.before "$pf"
expect "hook install" vfpass hook install
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 400

live_device() { virsh dumpxml train0 | grep -A1 "ua-vfpass-$1'" | grep -o "bus='0x[0-9a-f]*'"; }
config_device() {
    virsh dumpxml --inactive train0 | grep -A1 "ua-vfpass-$1'" | grep -o "bus='0x[0-9a-f]*'"
}
live_has() { grep -q "$1" <(virsh dumpxml train0); }
managed_live() { live_has 'vfpass:domain'; }
state_of() { leases | grep "\"$1\"" | jq -r '.[3]'; }

section "no free port"
mapping train0 rail0 "$pf" 'vlan: {id: 100}'
cat >>"$vms/train0.yaml" <<YAML
  - {name: rail1, pf: {pci: "$pf"}}
YAML
expect_exit 1 "attach of two devices with one free port fails" vfpass attach train0
expect_said "the error names the entry" "no free hotplug port for rail1"
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is unchanged" /tmp/host.before /tmp/host.after
expect "no lease was made" no_lease

section "attach to the running guest"
mapping train0 rail0 "$pf" 'vlan: {id: 100}'
expect_exit 3 "plan shows a change" vfpass plan train0
expect_said "plan shows the plug as a step" "into the running domain"
expect "attach" vfpass attach train0
expect_equal "the device has the same address in the running and the inactive XML" "$(config_device rail0)" \
    "$(live_device rail0)"
expect "the device is behind the spare port" test "$(live_device rail0)" = "bus='0x01'"
expect "the running domain has our metadata" managed_live
expect_equal "the lease is running" running "$(state_of rail0)"
mac=$(vf_attributes "$netdev" 0 | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p')
expect "the guest's driver is bound to the VF, which has the leased MAC" wait_until 120 in_guest train0 "$mac"
expect "a second attach changes nothing" vfpass attach train0
expect "status reports no drift" vfpass status train0

section "changing the VF's attributes while the guest runs"
mapping train0 rail0 "$pf" 'vlan: {id: 200}'
expect_exit 3 "a changed mapping is drift" vfpass status train0
expect_said "status shows what attach would set" "vlan 200"
expect "attach" vfpass attach train0
expect_contains "the VLAN takes effect at once" "vlan 200" vf_attributes "$netdev" 0
expect_equal "the guest keeps the device" "bus='0x01'" "$(live_device rail0)"
expect "status reports no drift" vfpass status train0
ip link set dev "$netdev" vf 0 vlan 300
expect_exit 3 "an attribute that something else has changed is drift" vfpass status train0
expect_said "status prints the remedy" 'to set it again'
expect "attach sets the attribute again" vfpass attach train0
expect_contains "the VF has the attached VLAN" "vlan 200" vf_attributes "$netdev" 0
mapping train0 rail0 "$pf" 'vlan: {id: 200}' 'mac: "02:00:00:00:77:01"'
expect_exit 5 "another MAC is refused while the guest runs" vfpass attach train0
mapping train0 rail0 "$pf" 'vlan: {id: 200}'

section "detach asks the guest for holders of the device"
guest_shell train0 "for n in /sys/class/net/*; do grep -q '$mac' \$n/address &&
    ip addr add 192.168.100.10/24 dev \${n##*/} && ip link set dev \${n##*/} up; done; true" >/dev/null
expect_exit 5 "detach refuses a VF with an IP address" vfpass detach train0
expect_said "the error has the address" "192.168.100.10"
expect_equal "the guest still has the device" "bus='0x01'" "$(live_device rail0)"
guest_shell train0 "for n in /sys/class/net/*; do grep -q '$mac' \$n/address &&
    ip addr flush dev \${n##*/} && ip link set dev \${n##*/} down; done; true" >/dev/null
expect "detach --live unplugs an unused device from the running domain only" vfpass detach --live train0
refuse "the running domain no longer has the device" live_has ua-vfpass-rail0
expect "the inactive XML has the device" test -n "$(config_device rail0)"
expect_equal "the lease is reserved" reserved "$(state_of rail0)"
refuse "the VF is scrubbed" grep -q 'vlan 200' <(vf_attributes "$netdev" 0)
expect "attach plugs the device again" vfpass attach train0
expect_equal "the device has the same address" "bus='0x01'" "$(live_device rail0)"
expect_contains "the VF has its VLAN again" "vlan 200" vf_attributes "$netdev" 0

section "a guest that does not answer"
virsh suspend train0 >/dev/null
expect_exit 6 "detach refuses when the guest does not answer" vfpass detach train0
expect_said "the remedy is --force" "--force"
expect_exit 1 "detach --force fails while the guest keeps the device" \
    vfpass detach --force --timeout 8 train0
expect_said "the error says that the device is still plugged" "the device is still plugged"
expect_equal "the running domain has the device" "bus='0x01'" "$(live_device rail0)"
expect_equal "the lease is still running" running "$(state_of rail0)"
# Not SIGINT, which the shell lets background jobs ignore.
vfpass -v detach --force --timeout 60 train0 >/tmp/interrupted.log 2>&1 &
detach=$!
expect "a third detach waits for the guest" wait_until 30 grep -q 'unplug' /tmp/interrupted.log
kill -TERM "$detach"
wait "$detach"
expect_equal "SIGTERM ends it" 143 $?
expect_contains "it says that it has rolled back" "detach of domain train0 was rolled back" cat /tmp/interrupted.log
expect_equal "the running domain has the device" "bus='0x01'" "$(live_device rail0)"
expect_equal "the lease is still running" running "$(state_of rail0)"
expect_equal "nothing is left to recover" "vfpass: nothing to do: no operation was interrupted" "$(vfpass recover 2>&1)"
virsh resume train0 >/dev/null
# The guest may still process the earlier request; in either case detach ends with the device unplugged.
expect "detach succeeds after the guest is resumed" vfpass detach --force train0
refuse "the running domain no longer has the device" live_has ua-vfpass-rail0
refuse "the running domain no longer has our metadata" managed_live
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the XML is restored, byte for byte" /tmp/xml.before /tmp/xml.after
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after

section "--config and --live separately"
expect "attach --config" vfpass attach --config train0
refuse "the running domain does not have the device" live_has ua-vfpass-rail0
expect_equal "the lease is reserved" reserved "$(state_of rail0)"
expect "status reports no drift" vfpass status train0
expect "detach --config" vfpass detach --config train0
expect "attach --live" vfpass attach --live train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the inactive XML is unchanged" /tmp/xml.before /tmp/xml.after
expect_equal "the lease is running" running "$(state_of rail0)"

section "a start that the hook had no time to record"
python3 -c 'import sqlite3
with sqlite3.connect("/var/lib/vfpass/vfpass.db") as database:
    database.execute("UPDATE leases SET state = ?, lease = json_set(lease, ?, ?)", ["starting", "$.state", "starting"])'
expect_equal "the lease is starting" starting "$(state_of rail0)"
expect "recover" vfpass recover
expect_said "recover says that the domain runs" "the domain runs"
expect_equal "the lease is running" running "$(state_of rail0)"

section "gc"
expect "gc changes nothing while the guest runs" vfpass gc
expect_equal "the lease is running" running "$(state_of rail0)"
virsh destroy train0 >/dev/null
reserved() { test "$(state_of rail0)" = reserved; }
expect "the stop releases the VF, which the live metadata names" wait_until 20 reserved
expect_exit 3 "gc --dry-run shows the steps" vfpass gc --dry-run
expect "gc" vfpass gc
expect "no lease is left" no_lease
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after
expect_exit 2 "attach --live on a domain that is not running" vfpass attach --live train0

section "a transient domain"
virsh dumpxml --inactive --security-info train0 >/tmp/transient.xml
virsh --quiet undefine train0
virsh --quiet create /tmp/transient.xml
expect_exit 2 "attach --config on a transient domain" vfpass attach --config train0
expect "attach" vfpass attach train0
expect_equal "the transient domain has the device" "bus='0x01'" "$(live_device rail0)"
virsh destroy train0 >/dev/null
expect_exit 3 "a lease of a vanished domain is drift" vfpass status
expect_said "status prints the remedy" "vfpass gc"
expect "gc" vfpass gc
expect "no lease is left" no_lease
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after
finish
