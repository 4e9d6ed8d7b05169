# A VF and a stand-in GPU (lab/gpu) that vfpass gives a guest, below one switch as on the host: libvirt starts it, the guest's driver has
# the memory, verify finds GPU, BAR, distance and DMA-BUF export, and the unchanged probe fills, checks and exports. Before that the host
# itself is measured (verify --baseline), and verify names what differs from it. Then links of the chain are broken one by one, and verify
# names each (docs/verify.md).
# covers: src/probe/gpu src/guest/verify src/topology src/plan/*place* src/commands/*baseline* src/report/topology_nccl.cpp src/commands/measure_pf.cpp lab/gpu
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

export AGENT_TIMEOUT=500

section "the host itself"
install_vfpass
require "mlx5_core loads" load_mlx5
# The first PF and the first GPU are on node 0, below one switch.
pf=$(pf_address 0) gpu=$(lspci -D -d 10de: | head -n 1 | cut -d' ' -f1)
make_vfs "$pf" 1
netdev=$(pf_netdev 0)
ip link set dev "$netdev" up
# For the guest's second start. libvirtd looks for the file system when it starts.
mkdir -p /dev/hugepages && mount -t hugetlbfs hugetlbfs /dev/hugepages
echo 512 >/proc/sys/vm/nr_hugepages
start_libvirt
# The figures of a verification in the guest are of the same messages.
small='--bytes 64 --iterations 20000'
require "mlx5_ib loads" modprobe mlx5_ib
ip address add 10.99.0.200/24 dev "$netdev"
state_of_pf() { cat "/sys/bus/pci/devices/$pf"/{sriov_numvfs,config} | cksum && ip -d link show dev "$netdev" | grep -v -e RX -e TX; }
before=$(state_of_pf)
# shellcheck disable=SC2086  # two options
baseline() { vfpass verify --baseline "$@" $small; }
expect "the PF is measured" baseline "$netdev" --json
kept=/var/lib/vfpass/baselines/$pf.json
expect_equal "writes and reads, with and without relaxed ordering" 4 "$(jq '.figures | length' "$kept")"
expect_equal "every figure is more than nothing" true "$(jq '[.figures[].gigabits_per_second > 0] | all' "$kept")"
expect_equal "the card's firmware is recorded" "$(cat /sys/class/infiniband/*/fw_ver | sort -u)" "$(jq -r .firmware "$kept")"
expect_equal "nobody used the card, and all could be seen" 0 "$(jq '.users + .unseen_users | length' "$kept")"
expect_equal "nothing has changed" "$before" "$(state_of_pf)"
expect_exit 5 "a GPU without a driver of the host is refused" baseline "$pf" "$gpu"
expect_exit 2 "a VF is refused" baseline "$(vf_address 0 0)"
expect_exit 1 "a PF that another command has locked is not measured" \
    flock "/run/vfpass/pf-$pf.lock" vfpass verify --baseline "$pf" --timeout 10
ip address del 10.99.0.200/24 dev "$netdev"

section "a guest with a VF and a GPU below one switch"
define_guest train0 --gpu
{
    printf 'version: 1\nvm: train0\ntopology: mirror\nvfs:\n'
    printf '  - {name: rail0, pf: {pci: "%s"}, guest: {mtu: 9000}}\n' "$pf"
    printf 'gpus:\n  - {name: gpu0, pci: "%s"}\n' "$gpu"
} >"$vms/train0.yaml"
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 900
expect_contains "its RDMA device is up" uverbs0 rdma_up train0 10.99.0.1

section "verify: every byte through the NIC to and from the GPU's memory"
# shellcheck disable=SC2086  # two options
verify() { vfpass verify train0 --json $small --no-tools --relaxed-ordering off --timeout 1800 2>/tmp/verify.log; }
# all_data RESULT: each of the four paths of data has a finding, and all findings have this result. Prints those that have another one.
all_data() {
    jq -c --arg wanted "$1" '.findings[] | select((.key | startswith("data-")) and .result != $wanted) | [.key, .result, .seen]' \
        <<<"$document"
    expect_equal "each path of data: $1" "data-gpu $1, data-gpu-to-host $1, data-host $1, data-host-to-gpu $1" \
        "$(member '[.findings[] | select(.key | startswith("data-")) | "\(.key) \(.result)"] | unique | join(", ")')"
}
document=$(verify)
seen gpu-driver passed found
seen gpu-bar passed "64 MiB"
seen gpu-path passed DMA-BUF
seen gpu-distance passed "PIX to GPU gpu0"
all_data passed
expect_contains "the card registered the GPU's memory" "via dma-buf" finding data-gpu seen
seen pcie-packets passed "MaxReadReq 512"
seen vf-settings passed "it does"
expect_contains "the guest is compared with the host itself" "host write" finding baseline seen
seen numa-placement warning "vCPUs not restricted to a node"
jq -c '.findings[] | select(.key | startswith("data-")) | [.key, .result, .seen]' <<<"$document"

pin_vcpus() { virsh --quiet vcpupin "$1" 0 0 --live; }

section "the probe by itself"
guest_shell train0 "/var/lib/vfpass-probe/vfpass-probe-* gpu-selftest --bytes 8M --rounds 1" >/tmp/said.json
expect_equal "memory is filled and checked at every alignment" true "$(jq .passed /tmp/said.json)"
expect_equal "it is exported as DMA-BUF" true "$(jq .dma_buf.exported /tmp/said.json)"
expect_equal "the GPU's name says what it is" "Stand-in GPU of the lab, no NVIDIA hardware" "$(jq -r .gpu /tmp/said.json)"

section "what differs from the host itself"
# The guest's figures are compared with a host a thousand times as fast, which also had a GPU and gained by relaxed ordering: the shares are
# then far below the limit, so that verify looks for factors. No emulated device has another MaxPayload than 128.
jq --arg gpu "$gpu" '.figures |= map(.gigabits_per_second *= if .relaxed_ordering then 2000 else 1000 end) |
    .figures += [.figures[] | .memory = "gpu" | .gpu = $gpu] | .settings["max-payload"] = "256"' "$kept" >/tmp/claimed.json
expect "the baseline claims more than the host reached" cp /tmp/claimed.json "$kept"
# factor NAME: what the last verification has found of it.
factor() { member "[.baselines[0].factors[] | select(.name == \"$1\").seen] | join(\"; \")"; }
# differs NAME WORDS, same NAME
differs() { expect_contains "$1 differs from the host" "$2" factor "$1"; }
same() { expect_equal "$1 does not" "" "$(factor "$1")"; }
huge=/sys/kernel/mm/transparent_hugepage/enabled
thp=$(grep -o '\[[a-z]*\]' $huge | tr -d '[]')
document=$(verify)
all_data passed
seen baseline warning "different from the host: "
expect_contains "GPU memory is compared as well" "gpu0 write" finding baseline seen
differs ats "disabled in the firmware"
differs acs "0011101 for 1x111x1"
differs relaxed-ordering "not measured with it"
differs numa-placement "vCPUs not restricted to a node"
differs hugepages "no reserved huge pages"
differs max-payload "128, during the baseline 256"
same pcie-packets
same max-read-request
differs nccl-topology "none, so NCCL assumes"
same transparent-hugepages
same cpuidle-governor
jq -c '.baselines[0].factors[] | [.name, .seen, .remedy]' <<<"$document"

section "a GPU whose memory returns another byte"
expect "the host poisons a byte" sh /vfpass/lab/connectx/control "$gpu" poison 20
document=$(verify)
expect_equal "verify fails" failed "$(member .result)"
expect_equal "a path through the GPU fails" true \
    "$(member '[.findings[] | select(.key | startswith("data-gpu")) | .result == "failed"] | any')"
refuse "no line of a kernel log is quoted as the reason" grep -qF "domain type" <<<"$document"
jq -c '.findings[] | select(.result == "failed") | [.key, .seen, .remedy]' <<<"$document"
expect "the host removes the poison" sh /vfpass/lab/connectx/control "$gpu" poison off
# The setting that doctor's remedy makes at boot.
nic_port=$(basename "$(dirname "$(readlink -f "$pci_devices/$pf")")")
expect "the port above the NIC may pass translated requests on" setpci -s "$nic_port" ECAP_ACS+6.w=0040:0040
document=$(verify)
all_data passed
same acs
setpci -s "$nic_port" ECAP_ACS+6.w=0000:0040

section "links of the chain that are broken"
# Each is restored; the last verification passes again.
expect "the guest's GPU driver exports no DMA-BUF" guest_shell train0 'touch /run/stand-in-gpu-without-dma-buf'
document=$(verify)
seen gpu-path failed "the driver does not export DMA-BUF"
expect "it exports DMA-BUF again" guest_shell train0 'rm /run/stand-in-gpu-without-dma-buf'

expect "another program has set the VF's VLAN" ip link set dev "$netdev" vf 0 vlan 99
expect "the PF's relaxed ordering is off, and its MaxReadReq 128" setpci -s "$pf" CAP_EXP+8.w=0000:7010
expect "the guest's vCPUs are pinned" pin_vcpus train0
echo never >$huge
idle=/sys/devices/system/cpu/cpuidle
governor=$(cat $idle/current_governor)
other=$(tr ' ' '\n' <$idle/available_governors | grep -v -m 1 -x -e "$governor" -e '')
echo "$other" >$idle/current_governor
# nccl_file [SED]: the guest gets the topology file that vfpass computes, changed by SED.
nccl_file() {
    guest_shell train0 "cat >/run/nccl-topology.xml <<'END'
$(vfpass topo --vm train0 --format nccl | sed "${1:-}")
END
echo NCCL_TOPO_FILE=/run/nccl-topology.xml >/etc/nccl.conf"
}
expect "the guest gets a topology file for NCCL" nccl_file
expect "the GPU's link uses 4 of 16 lanes" sh /vfpass/lab/connectx/control "$gpu" width 4
document=$(verify)
seen pcie-link warning "the link of $gpu runs at Gen5 x4 of Gen5 x16"
seen vf-settings warning "vlan is 99 qos 0 802.1Q instead of none"
seen pcie-packets warning "Relaxed Ordering off"
seen pcie-packets warning "MaxReadReq 128"
expect_contains "pinned vCPUs are on a node" "vCPUs on node 0" finding numa-placement seen
differs pcie-packets "Relaxed Ordering off"
differs max-read-request "128, during the baseline 512"
differs transparent-hugepages "never, during the baseline $thp"
differs cpuidle-governor "$other, during the baseline $governor"
seen nccl-topology passed /run/nccl-topology.xml
same nccl-topology
# The factor still names the memory, which may be on any node.
refuse "pinned vCPUs are no longer named" grep -q "vCPUs not restricted" <(factor numa-placement)
# The remedies: the mapping states the VLAN, MaxReadReq is 4096, and relaxed ordering on.
sed -i 's/guest: {mtu/vlan: {id: 99}, guest: {mtu/' "$vms/train0.yaml"
expect "attach takes the VLAN of the mapping" vfpass attach train0
setpci -s "$pf" CAP_EXP+8.w=5010:7010
echo "$thp" >$huge
echo "$governor" >$idle/current_governor
expect "the GPU's link uses all lanes" sh /vfpass/lab/connectx/control "$gpu" width 16

# An address for BAR2 that is a multiple of 1 TiB: there is none in the guest's window.
# shellcheck disable=SC2016  # the guest's shell expands it
guest_gpu=$(guest_shell train0 'for each in /sys/bus/pci/devices/*; do
    [ "$(cat "$each/vendor")" != 0x10de ] || basename "$each"; done')
# again ALIGNMENT: the guest's kernel looks for addresses of the GPU again.
again() {
    guest_shell train0 "echo '$1' >/sys/bus/pci/resource_alignment
        echo 1 >/sys/bus/pci/devices/$guest_gpu/remove && echo 1 >/sys/bus/pci/rescan"
}
expect "the GPU's BARs do not fit into the guest's window" again "40@$guest_gpu"
document=$(verify)
seen gpu-bar failed "has no address"
expect "they fit again" again ""
expect "the topology file is that of a slower GPU" nccl_file "/$guest_gpu/s|link_speed=\"[0-9.]*|link_speed=\"8.0|"
document=$(verify)
all_data passed
seen nccl-topology warning "has $guest_gpu at 8 GT/s x16, on the host 32 GT/s x16"
differs nccl-topology "NCCL plans with the file's links"
seen vf-settings passed "it does"
seen pcie-packets passed "MaxReadReq 4096"
same pcie-packets
differs max-read-request "4096, during the baseline 512"
same transparent-hugepages
same cpuidle-governor
expect_equal "no link is below what it can do" null "$(finding pcie-link result)"

section "a NIC far from the GPU, and memory in huge pages"
expect "the guest stops" virsh --quiet destroy train0
expect "detach" vfpass detach train0
virsh dumpxml --inactive --security-info train0 |
    sed 's|</currentMemory>|&<memoryBacking><hugepages/></memoryBacking>|' >/tmp/huge.xml
expect "the guest gets its memory in huge pages" virsh --quiet define /tmp/huge.xml
far=$(lspci -D -d 10de: | tail -n 1 | cut -d' ' -f1)
sed -i -e 's/^topology:.*/topology: flat/' -e "s/$gpu/$far/" "$vms/train0.yaml"
expect "attach of the other GPU" vfpass attach train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 900
expect_contains "its RDMA device is up" uverbs0 rdma_up train0 10.99.0.1
document=$(verify)
seen gpu-distance warning "NCCL does not use GPUDirect"
expect_contains "the remedy names the distance on the host" "apart on the host" finding gpu-distance remedy
same hugepages
differs numa-placement "vCPUs not restricted to a node"

section "the devices go back"
expect "the guest stops" virsh --quiet destroy train0
expect "detach" vfpass detach train0
expect "nothing is left" vfpass recover
finish
