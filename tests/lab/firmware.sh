# firmware.sh FIRMWARE: a guest that boots with SeaBIOS or OVMF and has a root port before those of vfpass, so that its
# bus numbers differ from the XML's. The guest addresses that vfpass reports have to match the guest's.
# covers: src/topology/guest_topology.cpp src/commands/guest_devices.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

firmware=$1 options=()
[ "$firmware" != ovmf ] || options=(--ovmf)
export AGENT_TIMEOUT=240
agent_timeout=600

# address_of INDEX: the VF's PCI address in the guest.
address_of() { in_guest train0 "$(vf_attribute 0 "$1" address)" | cut -d/ -f6; }

section "a guest with $firmware"
install_vfpass
load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
start_libvirt
cat >/tmp/port.xml <<'XML'
<controller type='pci' index='8' model='pcie-root-port'>
  <address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0'/>
</controller>
XML
expect "the guest is defined" define_guest train0 "${options[@]}" --device /tmp/port.xml
mapping train0 rail0 "$pf" 'index: 0' 'guest: {address: 192.168.100.10/24, mtu: 9000}'
cat >>"$vms/train0.yaml" <<YAML
  - {name: rail1, pf: {pci: "$pf"}, index: 1, guest: {address: 192.168.200.10/24}}
YAML
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
require "virsh start" virsh start train0
require "the guest's agent answers" wait_for_agent train0 $agent_timeout
took "the guest's start"
expect "both VFs are bound to the guest's driver" wait_until 400 guest_drives train0 2
for index in 0 1; do
    address=$(address_of $index)
    require "the guest has rail$index's MAC" test -n "$address"
    expect "rail$index's address differs from the XML's ($address)" test "${address#0000:0$((index + 1)):}" = "$address"
    expect_contains "topo --vm shows the guest's address" "rail$index  $address" vfpass topo --vm train0 --format tree
done

section "guest-setup"
expect "guest-setup --yes" vfpass guest-setup train0 --timeout 900 --yes
expect_contains "rail0 is set up" 192.168.100.10/24 guest_shell train0 \
    "ip address show dev \$(ls /sys/bus/pci/devices/$(address_of 0)/net)"
expect_contains "rail1 is set up" 192.168.200.10/24 guest_shell train0 \
    "ip address show dev \$(ls /sys/bus/pci/devices/$(address_of 1)/net)"
took "the section"
finish
