# Running domains: plugged in and out through libvirt's events, the guest's agent asked first; an
# edited mapping, gc, and a host that is as found at the end.
# covers: src/hypervisor src/plan/check_running.* src/domain/place_in_running.cpp src/cli/attach.cpp src/cli/detach.cpp
# covers: src/cli/gc.cpp src/guest/device_use.cpp src/plan/garbage.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

section "a running guest with one spare root port"
install_vfpass
load_standin
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

section "without room nothing is touched"
mapping train0 rail0 "$pf" 'vlan: {id: 100}'
cat >>"$vms/train0.yaml" <<YAML
  - {name: rail1, pf: {pci: "$pf"}}
YAML
expect_exit 1 "two devices do not fit behind one port" vfpass attach train0
expect_said "the message names the entry" "no free hotplug port for rail1"
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is untouched" /tmp/host.before /tmp/host.after
expect "no lease was made" no_lease

section "attach to the running guest"
mapping train0 rail0 "$pf" 'vlan: {id: 100}'
expect_exit 3 "plan shows the plugging" vfpass plan train0
expect_said "as a step" "into the running domain"
expect "attach" vfpass attach train0
expect_equal "the running domain has it where its next start will" "$(config_device rail0)" \
    "$(live_device rail0)"
expect "which is behind the spare port" test "$(live_device rail0)" = "bus='0x01'"
expect "the running domain is known to be managed" managed_live
expect_equal "the lease runs" running "$(state_of rail0)"
mac=$(vf_attributes "$netdev" 0 | sed -n 's/.*link\/ether \([0-9a-f:]*\).*/\1/p')
expect "the guest drives it, and its driver probes again" reprobe_in_guest train0 1
expect_contains "with the leased MAC" vport in_guest train0 "$mac"
expect "a second attach has nothing to do" vfpass attach train0
expect "status sees no drift" vfpass status train0

section "values of the switch change while the guest runs"
mapping train0 rail0 "$pf" 'vlan: {id: 200}'
expect_exit 3 "an edited mapping is drift" vfpass status train0
expect_said "which says what attach would set" "vlan 200"
expect "attach" vfpass attach train0
expect_contains "the VLAN counts at once" "vlan 200" vf_attributes "$netdev" 0
expect_equal "the guest kept the device" "bus='0x01'" "$(live_device rail0)"
expect "status sees no drift" vfpass status train0
ip link set dev "$netdev" vf 0 vlan 300
expect_exit 3 "a value set behind our back is drift" vfpass status train0
expect_said "and status says how to mend it" 'sets it again'
expect "attach sets it again" vfpass attach train0
expect_contains "as attached" "vlan 200" vf_attributes "$netdev" 0
mapping train0 rail0 "$pf" 'vlan: {id: 200}' 'mac: "02:00:00:00:77:01"'
expect_exit 5 "another MAC is refused while the guest runs" vfpass attach train0
mapping train0 rail0 "$pf" 'vlan: {id: 200}'

section "detach asks the guest who uses the device"
guest_shell train0 "for n in /sys/class/net/*; do grep -q '$mac' \$n/address &&
    ip addr add 192.168.100.10/24 dev \${n##*/} && ip link set dev \${n##*/} up; done; true" >/dev/null
expect_exit 5 "an address on it is a reason against" vfpass detach train0
expect_said "named" "192.168.100.10"
expect_equal "the guest still has it" "bus='0x01'" "$(live_device rail0)"
guest_shell train0 "for n in /sys/class/net/*; do grep -q '$mac' \$n/address &&
    ip addr flush dev \${n##*/} && ip link set dev \${n##*/} down; done; true" >/dev/null
expect "unused, it is unplugged, from the running domain only" vfpass detach --live train0
refuse "the running domain has it no more" live_has ua-vfpass-rail0
expect "its next start does" test -n "$(config_device rail0)"
expect_equal "the lease is kept" reserved "$(state_of rail0)"
refuse "the VF is scrubbed" grep -q 'vlan 200' <(vf_attributes "$netdev" 0)
expect "attach plugs it in again, in the same place" vfpass attach train0
expect_equal "as before" "bus='0x01'" "$(live_device rail0)"
expect_contains "with its values" "vlan 200" vf_attributes "$netdev" 0

section "a guest that does not answer"
virsh suspend train0 >/dev/null
expect_exit 6 "without an answer nobody can say who uses it" vfpass detach train0
expect_said "and --force is offered" "--force"
expect_exit 1 "a guest that keeps the device is told apart from one that let go" \
    vfpass detach --force --timeout 8 train0
expect_said "it still has the device" "it still has the device"
expect_equal "the running domain has it" "bus='0x01'" "$(live_device rail0)"
expect_equal "the lease runs on" running "$(state_of rail0)"
virsh resume train0 >/dev/null
# The guest now answers the request from before; either way detach ends with the device gone.
expect "resumed, the guest lets go" vfpass detach --force train0
refuse "the running domain has it no more" live_has ua-vfpass-rail0
refuse "nor is it known to be managed" managed_live
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the XML is byte for byte as it was" /tmp/xml.before /tmp/xml.after
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is as it was" /tmp/host.before /tmp/host.after

section "--config and --live apart"
expect "attach --config" vfpass attach --config train0
refuse "the running domain has nothing" live_has ua-vfpass-rail0
expect_equal "the lease waits" reserved "$(state_of rail0)"
expect "status sees no drift" vfpass status train0
expect "detach --config" vfpass detach --config train0
expect "attach --live" vfpass attach --live train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the persistent XML is untouched" /tmp/xml.before /tmp/xml.after
expect_equal "the lease runs" running "$(state_of rail0)"

section "gc"
expect "nothing is garbage while the guest runs" vfpass gc
expect_equal "the lease runs" running "$(state_of rail0)"
virsh destroy train0 >/dev/null
reserved() { test "$(state_of rail0)" = reserved; }
expect "its end released the VF: the live metadata led there" wait_until 20 reserved
expect_exit 3 "gc --dry-run shows the restoration" vfpass gc --dry-run
expect "gc" vfpass gc
expect "no lease is left" no_lease
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is as it was" /tmp/host.before /tmp/host.after
expect_exit 2 "--live on a domain that does not run" vfpass attach --live train0

section "a transient domain"
virsh dumpxml --inactive --security-info train0 >/tmp/transient.xml
virsh --quiet undefine train0
virsh --quiet create /tmp/transient.xml
expect_exit 2 "--config on a transient domain" vfpass attach --config train0
expect "attach" vfpass attach train0
expect_equal "it has the device" "bus='0x01'" "$(live_device rail0)"
virsh destroy train0 >/dev/null
expect_exit 3 "with the domain gone, the lease is drift" vfpass status
expect_said "and status says how to mend it" "vfpass gc"
expect "gc" vfpass gc
expect "no lease is left" no_lease
snapshot_host /tmp/host.after "$pf"
expect_same_file "the host is as it was" /tmp/host.before /tmp/host.after
finish
