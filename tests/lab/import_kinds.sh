# Hand-made VMs of other kinds move in and out: one that also has a device of a libvirt network's pool, while it runs; and one whose VF is
# teamed with a virtio interface. The machines have no guest system (tiny.sh).
# covers: src/commands/import* src/plan/import* src/plan/adopt_element.cpp src/domain/read_hand_made.cpp src/domain/adopted_elements.*
# covers: src/report/kept_devices.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
ip link set dev "$netdev" up
ip link set dev "$netdev" vf 2 mac 52:54:00:12:34:02 vlan 42
ip link set dev "$netdev" vf 3 mac 52:54:00:12:34:03 vlan 43
# libvirt refuses a hostdev without /dev/vfio/vfio, which systemd makes at boot, and the init of the lab does not.
modprobe vfio-pci
start_libvirt
vfpass hook install

xml_to() { virsh dumpxml --inactive --security-info "$1" >"$2"; }
# What the guest has, as QEMU reports it: an unplugged or a moved device is missing.
seen_by_qemu() { qemu_of "$1" && virsh qemu-monitor-command "$1" --hmp 'info pci'; }

# unchanged VM WORD: the VM has its XML, QEMU its devices, and the host its VFs.
unchanged() {
    seen_by_qemu "$1" >/tmp/qemu.after
    expect_same_file "$2: QEMU runs with the same devices" /tmp/qemu.before /tmp/qemu.after
    snapshot_host /tmp/host.after "$pf"
    expect_same_file "$2: the host is unchanged" /tmp/host.before /tmp/host.after
}
# moved_out VM WORD: its XML is as before, and nothing of vfpass is left.
moved_out() {
    xml_to "$1" /tmp/xml.after
    expect_same_file "$2: the XML is restored" /tmp/xml.before /tmp/xml.after
    expect "$2: no lease" no_lease
}

section "a VM with a device of a pool, and one of its own"
{
    echo "<network><name>pool</name><forward mode='hostdev' managed='yes'>"
    for index in 0 1; do
        address_xml "$(vf_of "$pf" "$index")" | sed "s/<address/<address type='pci'/"
    done
    echo "</forward></network>"
} >/tmp/pool.xml
expect "the network is defined" virsh --quiet net-define /tmp/pool.xml
expect "the network is started" virsh net-start pool
vf=$(vf_of "$pf" 2)
hostdev_xml "$vf" 1 yes >/tmp/hostdev.xml
echo "<interface type='network'><source network='pool'/></interface>" >/tmp/nic.xml
expect "the domain is defined" define_tiny p --device /tmp/hostdev.xml --device /tmp/nic.xml
xml_to p /tmp/xml.before
expect "it starts" start_paused p
expect "its QEMU holds the VF" wait_until 30 holds_vf p
snapshot_host /tmp/host.before "$pf"
seen_by_qemu p >/tmp/qemu.before
expect_contains "QEMU answers" "Bus  0" cat /tmp/qemu.before
expect "import --write" vfpass import p --write
expect_said "the network's device is not taken over" "libvirt network pool chooses its device at each start"
expect_contains "the VM's own device is" "index: 2" cat "$vms/p.yaml"
expect_equal "it is the only one" 1 "$(grep -c 'adopt: true' "$vms/p.yaml")"
expect "check accepts the mapping" vfpass check p
expect "attach" vfpass attach p
unchanged p "attached"
expect_equal "the lease is running" "[\"p\",\"vf0\",\"$vf\",\"running\"]" "$(leases)"
expect "status reports no drift" vfpass status p
expect "detach --keep" vfpass detach --keep p
unchanged p "kept"
moved_out p "kept"
stop_hard p
expect "it starts without vfpass" start_paused p
expect_contains "its VF has its VLAN" "vlan 42" vf_attributes "$netdev" 2
stop_hard p
expect "the network is stopped" virsh net-destroy pool
expect "and removed" virsh net-undefine pool

section "a VF that is teamed with a virtio interface"
teamed=$(vf_of "$pf" 3)
# team MAC: the standby with this MAC, and the VF.
team() {
    cat <<XML
<controller type='pci' index='1' model='pcie-root-port'/>
<controller type='pci' index='2' model='pcie-root-port'/>
<interface type='user'>
  <mac address='$1'/>
  <model type='virtio'/>
  <teaming type='persistent'/>
  <alias name='ua-net0'/>
</interface>
<hostdev mode='subsystem' type='pci' managed='yes'>
  <source>$(address_xml "$teamed")</source>
  <teaming type='transient' persistent='ua-net0'/>
</hostdev>
XML
}
team 52:54:00:12:34:99 >/tmp/team.xml
expect "a domain with another MAC at the standby is defined" define_tiny other --device /tmp/team.xml
expect_exit 1 "import finds nothing that can be taken over" vfpass import other
expect_said "the reason is the MAC" "differs from that of ua-net0"
virsh --quiet undefine other
team 52:54:00:12:34:03 >/tmp/team.xml
expect "the domain is defined" define_tiny t --device /tmp/team.xml
xml_to t /tmp/xml.before
snapshot_host /tmp/host.before "$pf"
expect "import --write" vfpass import t --write
expect_contains "the mapping has the partner" "teaming: {with: net0}" cat "$vms/t.yaml"
expect "check accepts the mapping" vfpass check t
expect "attach" vfpass attach t
expect_equal "the VF is leased" "[\"t\",\"vf0\",\"$teamed\",\"reserved\"]" "$(leases)"
expect "it starts" start_paused t
expect_equal "the lease is running" running "$(lease_state t)"
expect_contains "the VF has its MAC" 52:54:00:12:34:03 vf_attributes "$netdev" 3
stop_hard t
expect_equal "the lease is reserved" reserved "$(lease_state t)"
expect "detach --keep" vfpass detach --keep t
moved_out t "kept"
expect "it starts without vfpass" start_paused t
expect_contains "the VF has its VLAN" "vlan 43" vf_attributes "$netdev" 3
stop_hard t

section "what cannot be imported"
expect_exit 2 "a domain that does not exist" vfpass import nobody
expect_exit 2 "a mapping that exists already" vfpass import t --write

section "the host itself"
snapshot_host /tmp/host.before "$pf"
rm -f /etc/vfpass/host.yaml
expect "import --host --write" vfpass import --host --write
expect_contains "host.yaml has the PF's VFs" "virtual-function-count: 4" cat /etc/vfpass/host.yaml
expect "host apply accepts it" vfpass host apply
snapshot_host /tmp/host.after "$pf"
expect_same_file "and changes nothing" /tmp/host.before /tmp/host.after
expect_exit 2 "a host.yaml that exists already" vfpass import --host --write
finish
