# vfpass topo against lspci, libvirt, ip, rdma and sysfs, and a snapshot against the host.
# covers: src/host/inventory src/topology src/commands/topo_command.cpp src/commands/snapshot_command.cpp src/doctor/capture src/report/topology_*
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

section "a host with two NUMA nodes and a PF on each"
install_vfpass
load_mlx5 rdma
pf=$(pf_address 0) other=$(pf_address 1)
make_vfs "$pf" 4
start_libvirt
expect "topo" vfpass topo --format json
printf '%s\n' "$last_output" >/tmp/topo.json
# of FILTER [FILE]: a value from topo's JSON.
of() { jq -r "$1" "${2:-/tmp/topo.json}"; }

section "lspci"
lspci -Dn | awk '{sub(":$", "", $2); print $1, $2, $3}' | sort >/tmp/lspci
of '.functions[] | "\(.address) \(.class[0:4]) \(.vendor):\(.device)"' | sort >/tmp/topo
expect "lspci lists functions" test -s /tmp/topo
expect_same_file "addresses, classes and IDs match" /tmp/lspci /tmp/topo
lspci -Dk | awk '/^[0-9a-f]/ {address = $1} /Kernel driver in use/ {print address, $NF}' | sort >/tmp/lspci
of '.functions[] | select(.driver) | "\(.address) \(.driver)"' | sort >/tmp/topo
expect_same_file "drivers match" /tmp/lspci /tmp/topo
for function in "$pf" "$other" "$(vf_of "$pf" 0)"; do
    lspci -Dvv -s "$function" | sed -n 's/.*LnkSta:.*Width x\([0-9]*\).*/\1/p' >/tmp/lspci
    of ".functions[] | select(.address == \"$function\") | .link.lanes // empty" >/tmp/topo
    expect_same_file "the link width of $function matches" /tmp/lspci /tmp/topo
done

section "libvirt"
# When it is first asked for QEMU's version, libvirt runs every emulator that it finds. vfpass does not wait so long for the answer.
expect "libvirt knows its QEMU" virsh version
node_of() {
    local xml
    xml=$(virsh nodedev-dumpxml "pci_$(tr ':.' '__' <<<"$1")") || return
    printf '%s group %s node %s pf %s\n' "$1" \
        "$(sed -n "s/.*<iommuGroup number='\([0-9]*\)'.*/\1/p" <<<"$xml")" \
        "$(sed -n "s/.*<numa node='\([0-9]*\)'.*/\1/p" <<<"$xml")" \
        "$(tr -d '\n' <<<"$xml" | sed -n "s/.*<capability type='phys_function'> *<address domain='0x\([0-9a-f]*\)' bus='0x\([0-9a-f]*\)' slot='0x\([0-9a-f]*\)' function='0x\([0-9a-f]*\)'.*/\1:\2:\3.\4/p")"
}
for function in "$pf" "$other" "$(vf_of "$pf" 0)" "$(vf_of "$pf" 3)"; do
    node_of "$function"
done >/tmp/libvirt
for function in "$pf" "$other" "$(vf_of "$pf" 0)" "$(vf_of "$pf" 3)"; do
    of ".functions[] | select(.address == \"$function\") |
        \"\(.address) group \(.iommu_group) node \(.numa_node // \"\") pf \(.pf // \"\")\""
done >/tmp/topo
expect_same_file "IOMMU groups, NUMA nodes and PFs match" /tmp/libvirt /tmp/topo
expect_equal "the PFs are on two nodes" "0 1" "$(of "[.functions[] | select(.total_vfs > 0) | .numa_node] | join(\" \")")"

section "ip"
for function in "$pf" "$other" "$(vf_of "$pf" 1)"; do
    of ".functions[] | select(.address == \"$function\") | .netdevs[]"
done | sort >/tmp/topo
ip -d -json link show | jq -r '.[] | select(.parentbus == "pci") | .ifname as $name | .parentdev | "\(.) \($name)"' |
    grep -E "^($pf|$other|$(vf_of "$pf" 1)) " | cut -d' ' -f2 | sort >/tmp/ip
expect_same_file "netdevs match" /tmp/ip /tmp/topo
expect_equal "VF count and maximum match" "4 8" \
    "$(of ".functions[] | select(.address == \"$pf\") | \"\(.vfs) \(.total_vfs)\"")"

section "rdma"
# rdma_of FUNCTION: its RDMA device.
rdma_of() { ls "/sys/bus/pci/devices/$1/infiniband"; }
for function in "$pf" "$other"; do
    of ".functions[] | select(.address == \"$function\") | .rdma[] |
        \"\(.name) guid \(.node_guid) firmware \(.firmware) port \(.ports[0].number) \(.ports[0].state)\""
done >/tmp/topo
rdma -d -j dev show >/tmp/rdma.dev
rdma -j link show >/tmp/rdma.link
for device in "$(rdma_of "$pf")" "$(rdma_of "$other")"; do
    jq -r --arg name "$device" '.[] | select(.ifname == $name) | "\(.ifname) guid \(.node_guid) firmware \(.fw)"' /tmp/rdma.dev |
        tr '\n' ' '
    jq -r --arg name "$device" '.[] | select(.ifname == $name) | "port \(.port) \(.state)"' /tmp/rdma.link
done >/tmp/rdma
expect_equal "both PFs have a device" 2 "$(wc -l </tmp/rdma)"
expect_same_file "RDMA devices, GUIDs, firmware and port states match" /tmp/rdma /tmp/topo
expect_equal "a PF's link layer is Ethernet" ethernet \
    "$(of ".functions[] | select(.address == \"$pf\") | .rdma[0].ports[0].link_layer")"
# Of a VF's device only the name is read.
vf=$(vf_of "$pf" 1)
expect_equal "a VF's device matches" "$(rdma_of "$vf")" "$(of ".functions[] | select(.address == \"$vf\") | .rdma[].name")"

section "the kernel's PCI tree"
for function in $(of '.functions[] | select(.parent) | .address'); do
    path=$(readlink -f "/sys/bus/pci/devices/$function")
    echo "$function $(basename "$(dirname "$path")")"
done >/tmp/kernel
of '.functions[] | select(.parent) | "\(.address) \(.parent)"' >/tmp/topo
expect_same_file "parents match" /tmp/kernel /tmp/topo

section "a snapshot"
expect "snapshot" vfpass snapshot /tmp/snapshot
vfpass --sysroot /tmp/snapshot topo --format json >/tmp/replayed.json
expect_same_file "topo prints the same for the snapshot as for the host" /tmp/topo.json /tmp/replayed.json
expect "snapshot to a tar" vfpass snapshot /tmp/snapshot.tar
mkdir /tmp/unpacked && tar -xf /tmp/snapshot.tar -C /tmp/unpacked
# The counters in meminfo change between the two snapshots; topo reads only MemTotal from it.
expect "the tar has the same content" diff -r --no-dereference --exclude=meminfo /tmp/snapshot /tmp/unpacked
vfpass --sysroot /tmp/unpacked topo --format json >/tmp/replayed.json
expect_same_file "topo prints the same for the unpacked tar as for the host" /tmp/topo.json /tmp/replayed.json
for format in matrix tree svg nccl; do
    expect "topo --format $format" vfpass topo --format "$format"
done
finish
