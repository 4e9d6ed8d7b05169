# The host's PCIe tree in a running guest: two NUMA nodes, with PF and stand-in GPU below a switch on node 0 and on
# separate root ports on node 1, where only the VFs of the PF share a switch; hotplug into a spare port, reboot, edits,
# 16 VFs, and the guests that the unit tests mirror from other hosts, started by QEMU.
# covers: src/topology src/plan/*place* src/plan/link_speeds.cpp src/domain/*place* src/domain/our_elements.* src/commands/guest_devices.* src/host/inventory/read_topology.cpp src/commands/guest_devices.cpp
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

usb_of() { # NODE: the stand-in GPU of that node
    local device
    for device in "$pci_devices"/*; do
        [ "$(cat "$device/class")" = 0x0c0330 ] && [ "$(cat "$device/numa_node")" = "$1" ] &&
            basename "$device"
    done
}

# rails COUNT [LINE...]: a mapping with COUNT VFs of each PF, the stand-in GPUs, and LINEs.
rails() {
    local count=$1 number
    shift
    {
        printf 'version: 1\nvm: train0\n'
        [[ $* == *topology:* ]] || echo 'topology: mirror'
        echo 'vfs:'
        for ((number = 0; number < count; ++number)); do
            printf '  - {name: a%s, pf: {pci: "%s"}}\n  - {name: b%s, pf: {pci: "%s"}}\n' \
                "$number" "$one" "$number" "$other"
        done
        printf 'gpus:\n  - {name: gpu0, pci: "%s"}\n  - {name: gpu1, pci: "%s"}\n' \
            "$(usb_of 0)" "$(usb_of 1)"
        printf '%s\n' "$@"
    } >"$vms/train0.yaml"
}

# Defines train0 with two cells, each with its memory on the host node with the same number.
two_cells() {
    guest_xml train0 --memory 512 | sed -e 's|<vcpu>1</vcpu>|<vcpu>2</vcpu><numatune>\
        <memnode cellid="0" mode="strict" nodeset="0"/><memnode cellid="1" mode="strict" nodeset="1"/>\
        </numatune><cpu><numa><cell id="0" cpus="0" memory="256" unit="MiB"/>\
        <cell id="1" cpus="1" memory="256" unit="MiB"/></numa></cpu>|' >/tmp/two-cells.xml
    virsh --quiet define /tmp/two-cells.xml
}

# The guest is slow: its two processors are emulated in an emulated machine.
export AGENT_TIMEOUT=300

# For every PCI function in the guest's kernel: address, NUMA node, and sysfs path.
guest_tree() {
    # shellcheck disable=SC2016  # the guest's shell expands it
    guest_shell train0 'cd /sys/bus/pci/devices && for d in *; do
        echo "$d $(cat $d/numa_node) $(readlink -f $d)"; done'
}

# entry_address NAME: the address of the entry according to `topo --vm`.
entry_address() {
    vfpass topo --vm train0 --json | jq -r --arg name "$1" \
        '.functions[] | select(.entry == $name) | .address'
}

# in_tree NAME NODE: the guest has the entry at the predicted address, on NODE, as slot 0 function 0.
in_tree() {
    local address
    address=$(entry_address "$1")
    grep -q "^$address $2 " /tmp/guest.tree && [[ $address == *:00.0 ]]
}

parent_of() { sed -n "s|^$(entry_address "$1") .*/\([^/]*\)/[^/]*/[^/]*$|\1|p" /tmp/guest.tree; }

# port_link NAME: speed and width that the port above the entry can have, in the guest's kernel.
port_link() {
    guest_shell train0 "cd -P /sys/bus/pci/devices/$(entry_address "$1")/.. && cat max_link_speed max_link_width" |
        paste -sd ' '
}

section "a host with two nodes, and a guest with two cells"
install_vfpass
modprobe xhci_pci
load_mlx5
one=$(pf_address 0) other=$(pf_address 1)
# No check concerns the host's driver for VFs, which takes seconds to probe each.
for pf in "$one" "$other"; do
    echo 0 >"$pci_devices/$pf/sriov_drivers_autoprobe"
    make_vfs "$pf" 8
done
start_libvirt
two_cells
settle train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.before
expect "hook install" vfpass hook install

section "plan and attach"
rails 2 'spare-ports: 1'
expect_exit 3 "plan shows the distances" vfpass plan train0
expect_said "plan says that the guest gets the host's distances" 'in the guest after the plan: as on the host'
expect "attach" vfpass attach train0
vfpass topo --vm train0 >/tmp/matrix
expect_equal "the guest's matrix equals the host's" \
    "$(sed -n '2,/^$/p' /tmp/matrix | sed '/^$/d')" "$(sed '1,/^$/d' /tmp/matrix | sed 1d)"
expect "a second attach changes nothing" vfpass attach train0
expect_said "attach reports that there is nothing to do" "nothing to do"
expect "the XML is valid" virsh define --validate <(virsh dumpxml --inactive --security-info train0)

section "the tree inside the running guest"
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 600
guest_tree >/tmp/guest.tree
for entry in a0 a1 gpu0; do expect "$entry has the predicted address and is on node 0" in_tree "$entry" 0; done
for entry in b0 b1 gpu1; do expect "$entry has the predicted address and is on node 1" in_tree "$entry" 1; done
vfpass topo --vm train0
vfpass topo --vm train0 --format tree
expect "status" vfpass status train0
expect_said "status reports peer-to-peer support" "peer-to-peer: train0: yes: VFIO containers (type 1)"
vfpass status train0 --json >/tmp/status.json
expect_equal "the JSON says that it was read from the process" process "$(jq -r '.peer_mappings[].seen_in' /tmp/status.json)"
expect_equal "VFs of one PF share a switch" "$(parent_of a0)" "$(parent_of a1)"
expect_equal "GPU and VFs below one host switch share a switch" "$(parent_of a0)" "$(parent_of gpu0)"
expect "GPU and VFs on separate root ports share no switch" test "$(parent_of b0)" != "$(parent_of gpu1)"
expect "VFs of different PFs share no switch" test "$(parent_of a0)" != "$(parent_of b0)"
before=$(entry_address a0)

section "hotplug into a spare port"
rails 3 'spare-ports: 1'
expect "attach plugs two more VFs" vfpass attach train0
wait_until 60 guest_drives train0 6
guest_tree >/tmp/guest.tree
expect "a2 is on node 0" in_tree a2 0
expect "b2 is on node 1" in_tree b2 1
expect_equal "a2 is at the same switch as a0" "$(parent_of a0)" "$(parent_of a2)"
expect_equal "the addresses are unchanged" "$before" "$(entry_address a0)"
# The switches are full. Node 1 has one spare root port left, because its stand-in GPU is on a root port.
rails 4 'spare-ports: 1'
sed -i '/name: a3/d' "$vms/train0.yaml"
expect_exit 3 "plan chooses a port that is farther away" vfpass plan train0
expect_said "plan reports the different distance" "has another distance to"
rails 5 'spare-ports: 1'
expect_exit 1 "attach fails without free ports" vfpass attach train0
expect_said "the remedy is spare-ports" "spare-ports"
rails 3 'spare-ports: 1'

section "reboot"
expect "the guest shuts down" shut_down_guest train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 600
guest_tree >/tmp/guest.tree
for entry in a0 a1 a2 gpu0; do expect "$entry is on node 0 again" in_tree "$entry" 0; done
expect "the guest shuts down" shut_down_guest train0

section "removing an entry and adding it again"
xml_address() { virsh dumpxml --inactive train0 | grep -A1 "ua-vfpass-$1'" | tail -n 1; }
kept=$(xml_address a1)
rails 1
expect "attach with fewer entries" vfpass attach train0
rails 3
expect "attach with all of them" vfpass attach train0
expect_equal "a1 has its address again" "$kept" "$(xml_address a1)"
settle train0
expect "attach changes nothing after libvirt has parsed the XML again" vfpass attach train0
expect_said "attach reports that there is nothing to do" "nothing to do"

section "16 VFs and two stand-in GPUs, with the host's link speeds"
rails 8 'link-speeds: host'
expect "attach" vfpass attach train0
expect_said "attach names the devices whose speed the guest cannot see" "QEMU's switch ports (x3130) show 2.5 GT/s x1"
expect "the XML is valid" virsh define --validate <(virsh dumpxml --inactive --security-info train0)
settle train0
expect "attach changes nothing after libvirt has parsed the XML again" vfpass attach train0
expect_said "attach reports that there is nothing to do" "nothing to do"
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 900
guest_tree >/tmp/guest.tree
for number in 0 1 2 3 4 5 6 7; do
    expect "a$number is on node 0" in_tree "a$number" 0
    expect "b$number is on node 1" in_tree "b$number" 1
done
# The stand-in GPU of node 1 is on a root port, which shows 16 GT/s x32 by default.
expect_equal "the root port above gpu1 shows the host's link" "2.5 GT/s PCIe 1" "$(port_link gpu1)"
expect "the guest shuts down" shut_down_guest train0

section "detach"
expect "detach" vfpass detach train0
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
expect_same_file "the XML is restored" /tmp/xml.before /tmp/xml.after
expect "no lease is left" no_lease

section "invalid configurations"
virsh --quiet undefine train0
define_guest train0
rails 1
expect_exit 2 "mirror refuses devices of two nodes for a guest without cells" vfpass attach train0
expect_said "the remedy is printed" "topology: flat"
rails 1 'topology: flat'
expect "flat accepts them" vfpass attach train0
rails 1
expect_exit 2 "mirror refuses them again" vfpass attach train0
# The same domain with cells; UUID, metadata and devices are unchanged.
virsh dumpxml --inactive --security-info train0 | sed -e "s|<vcpu.*</vcpu>|<vcpu>2</vcpu><numatune>\
    <memnode cellid='0' mode='strict' nodeset='0'/><memnode cellid='1' mode='strict' nodeset='1'/>\
    </numatune><cpu><numa><cell id='0' cpus='0' memory='112' unit='MiB'/>\
    <cell id='1' cpus='1' memory='112' unit='MiB'/></numa></cpu>|" -e '/<cpu mode/,/<\/cpu>/d' >/tmp/cells.xml
expect "the domain gets cells" virsh define /tmp/cells.xml
expect "attach mirrors the flat layout after cells were added" vfpass attach train0
expect "detach" vfpass detach train0

section "guests of other hosts"
require "their XML is written" /vfpass/build/tests/lab/write-mirrored-domains /tmp/mirrored
expect_equal "those of five hosts with 1 to 8 rails" 18 "$(find /tmp/mirrored -name '*.xml' | wc -l)"
for file in /tmp/mirrored/*.xml; do
    name=$(basename "$file" .xml)
    # A virtio-rng device replaces the host's device.
    sed -e 's|<name>.*</name>|<name>tree</name>|' \
        -e '/<uuid>/d' -e '/<numatune>/,/<\/numatune>/d' -e '/<metadata>/,/<\/metadata>/d' \
        -e 's/ mode=.host-passthrough. check=.none. migratable=.on.//' \
        -e 's|<hostdev .*|<rng model="virtio"><backend model="random">/dev/urandom</backend>|' \
        -e '/<source>/,/<\/source>/d' -e 's|</hostdev>|</rng>|' "$file" >/tmp/tree.xml
    expect "$name: libvirt defines it" virsh define --validate /tmp/tree.xml
    expect "$name: QEMU starts it" virsh start --paused tree
    virsh --quiet destroy tree
    virsh --quiet undefine tree
done

finish
