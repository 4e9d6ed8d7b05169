# doctor on a real kernel: the first failed check of the chain comes first, and every tested remedy resolves its
# finding when it is run exactly as printed.
# covers: src/doctor src/commands/doctor_command.cpp src/report/doctor_report.cpp
# shellcheck shell=bash disable=SC2016,SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_mlx5
good=$(pf_address 0) netdev=$(pf_netdev 0) switched=$(pf_address 1)
make_vfs "$good" 2
make_vfs "$switched" 2
ip link set dev "$netdev" up
ip link set dev "$(pf_netdev 1)" up
# The daemon starts without any hook.
start_libvirt
unload_kvm

examine() { vfpass doctor --json >/tmp/doctor.json; }
# of KEY FIELD: a field of the failed finding with this key, or else of the first.
of() {
    jq -r --arg key "$1" "[.findings[] | select(.key == \$key)] | sort_by(.result != \"failed\")[0].$2 // empty" \
        /tmp/doctor.json
}
first_broken() { jq -r '[.findings[] | select(.result == "failed")][0].key' /tmp/doctor.json; }
# finds KEY TEXT: the check fails and its finding contains TEXT.
finds() {
    examine
    expect_equal "$1 fails" failed "$(of "$1" result)"
    expect_contains "$1 reports what it found" "$2" of "$1" seen
}
# passes KEY: the check passes now, or soon: a port needs a moment until its link is up.
passes() { expect "$1 passes" wait_until 30 passes_now "$1"; }
passes_now() { examine; test "$(of "$1" result)" = passed; }
# run_remedy KEY: exactly as printed.
run_remedy() {
    local remedy
    remedy=$(of "$1" remedy)
    expect "\$ $remedy" bash -c "$remedy"
}
cure() {
    run_remedy "$1"
    passes "$1"
}
# of_pf KEY NETDEV: result and observation of the finding about this PF.
of_pf() {
    jq -r --arg key "$1" --arg netdev "$2" '.findings[] | select(.key == $key and .subject == $netdev) |
        "\(.result) \(.seen)"' /tmp/doctor.json
}

section "this host, unchanged"
examine
expect_equal "cpu-virtualization passes" passed "$(of cpu-virtualization result)"
expect_contains "iommu reports the number of groups" \
    "$(find /sys/kernel/iommu_groups -mindepth 1 -maxdepth 1 | wc -l) groups" of iommu seen
expect_equal "interrupt-remapping passes and names the unit" "passed IR-" "$(of interrupt-remapping result) $(of interrupt-remapping seen | cut -c1-3)"
expect_equal "the first failed check is kvm" kvm "$(first_broken)"
expect_exit 1 "doctor in text form fails" vfpass doctor
expect_said "the text begins with the first failed check" "first problem: kvm"
# modprobe succeeds because the emulated processor has SVM.
cure kvm
hold_kvm
expect_equal "the first failed check is now iommu-group" iommu-group "$(first_broken)"

section "the switch without ACS"
expect_contains "VFs below the switch share a group" "group $(iommu_group_of "$(vf_of "$switched" 0)") with" of iommu-group seen
expect "VFs of the other PF do not share a group" jq -e --arg netdev "$netdev" \
    '.findings[] | select(.key == "iommu-group" and .result == "passed" and .subject == $netdev)' /tmp/doctor.json
gpu=$(lspci -D -d 1002: | cut -d' ' -f1)
above=$(basename "$(dirname "$(readlink -f "/sys/bus/pci/devices/$gpu")")")
root=$(basename "$(dirname "$(dirname "$(dirname "$(readlink -f "/sys/bus/pci/devices/$gpu")")")")")
expect_equal "acs fails" failed "$(of acs result)"
expect_contains "acs names the port" "$above has no ACS" of acs seen
expect_contains "lspci shows no ACS either" no bash -c "lspci -vvs $above | grep -q 'Access Control Services' || echo no"
expect_contains "the remedy offers no setting, because a port without ACS has none" "no setting changes these ports" of acs remedy
# The root port's ACS control bits in lspci's format.
control=$(lspci -vvs "$root" | sed -n 's/.*ACSCtl:\t*//p')
expect_contains "lspci shows the root port's ACS" "SrcValid+" echo "$control"
expect_equal "acs does not report the root port" "" "$(of acs seen | grep -o "$root [01]* for" || true)"
expect_equal "ats fails" failed "$(of ats result)"

section "VFIO options that weaken IOMMU protection"
modprobe vfio-pci && modprobe vfio_iommu_type1
echo Y >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts
finds unsafe-interrupts "allow_unsafe_interrupts=Y"
expect_equal "the first failed check is unsafe-interrupts" unsafe-interrupts "$(first_broken)"
cure unsafe-interrupts
echo 'options vfio_iommu_type1 allow_unsafe_interrupts=1' >/etc/modprobe.d/lab.conf
finds unsafe-interrupts "allow_unsafe_interrupts=1"
expect_equal "the remedy names option and file" \
    "remove allow_unsafe_interrupts=1 from the options of vfio_iommu_type1 in /etc/modprobe.d/lab.conf" "$(of unsafe-interrupts remedy)"
# Debian's kernel is built without this option, so there is no parameter to set at run time.
echo 'options vfio enable_unsafe_noiommu_mode=1' >/etc/modprobe.d/lab.conf
finds no-iommu-mode "enable_unsafe_noiommu_mode=1"
expect_equal "the remedy names option and file" \
    "remove enable_unsafe_noiommu_mode=1 from the options of vfio in /etc/modprobe.d/lab.conf" "$(of no-iommu-mode remedy)"
rm /etc/modprobe.d/lab.conf
examine
expect_equal "no-iommu-mode passes without the file" passed "$(of no-iommu-mode result)"
expect_equal "unsafe-interrupts passes without the file" passed "$(of unsafe-interrupts result)"

section "the eswitch mode, from devlink"
expect_equal "legacy passes" "passed legacy" "$(of_pf eswitch "$netdev")"
mapping train0 rail0 "$good" 'vlan: {id: 5}'
expect "switchdev" devlink dev eswitch set "pci/$good" mode switchdev
finds eswitch switchdev
expect_equal "the mapping that requires legacy is named" "legacy: train0, rail0 requires vlan" "$(of eswitch expected)"
expect_equal "the remedy is a line of host.yaml" \
    "set embedded-switch-mode: legacy for PF $good in host.yaml, then run vfpass host apply" "$(of eswitch remedy)"
printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    embedded-switch-mode: legacy\n    allow-disruption: true\n' \
    "$good" >/etc/vfpass/host.yaml
examine
cure eswitch
expect_contains "devlink shows legacy" "mode legacy" devlink dev eswitch show "pci/$good"
rm /etc/vfpass/host.yaml

section "the PF's link and its MTU"
mapping train0 rail0 "$good" 'guest: {mtu: 4000}'
examine
expect_equal "acs only warns about a card that no mapping names" warning \
    "$(jq -r '[.findings[] | select(.key == "acs")][0].result' /tmp/doctor.json)"
vfpass doctor --json --device "$gpu" --device "$switched" >/tmp/doctor.json
expect_equal "acs fails for selected devices" failed "$(of acs result)"
expect_exit 2 "doctor --device of an unknown device" vfpass doctor --device nothing0
ip link set dev "$netdev" down
examine
expect_contains "pf-link reports a port that is down" "$netdev down" jq -r \
    '[.findings[] | select(.key == "pf-link" and .result == "failed")][0].seen' /tmp/doctor.json
cure pf-link
finds pf-mtu "$netdev has 1500"
cure pf-mtu
rm "$vms/train0.yaml"

section "the kernel's RDMA driver, and what it shows"
# The mappings name both PFs, so that both ports are judged.
mapping train0 rail0 "$good" 'vlan: {id: 5}'
mapping train1 rail0 "$switched"
examine
expect_equal "the link type is not observable without RDMA ports" "not_observable $netdev has no RDMA port" \
    "$(of link-type result) $(of link-type seen)"
expect_equal "neither is the firmware's version" "not_observable cannot read the version" "$(of_pf firmware-escape "$netdev")"
expect_equal "flow control is waived without a RoCE port" waived "$(of flow-control result)"
finds ofed "mlx5_ib not loaded"
cure ofed
expect_equal "both modules are the kernel's own" "the kernel's own" "$(of ofed seen)"
# With an RDMA device, a PF has its name.
rdma=$(ls "$pci_devices/$good/infiniband") second_rdma=$(ls "$pci_devices/$switched/infiniband")
passes pf-link
expect_equal "the port is active" "passed active" "$(of_pf pf-link "$rdma")"
expect_equal "the link type passes" "passed ethernet" "$(of link-type result) $(of link-type seen)"
expect_equal "firmware-escape reports the version that mlx5_ib shows" "failed $(<"/sys/class/infiniband/$rdma/fw_ver")" \
    "$(of_pf firmware-escape "$rdma")"
expect_equal "firmware with the fix passes" "passed 22.46.3008" "$(of_pf firmware-escape "$second_rdma")"
expect_equal "the firmware's settings need a program" "neither mstconfig nor mlxconfig shows them" "$(of firmware-settings seen)"
# One finding for each port.
for _ in 1 2; do
    finds arp "arp_ignore 0, arp_announce 0"
    run_remedy arp
done
passes arp
expect_equal "PFC is read; ECN is unknown, because only OFED shows it" \
    "not_observable PFC off, ECN unknown, no DSCP mapped to a priority" "$(of_pf flow-control "$netdev")"
pause() { dcb pfc set dev "$(pf_netdev "$1")" prio-pfc "3:$2"; }
expect "the first port pauses priority 3" pause 0 on
finds flow-control "PFC off, ECN unknown, no DSCP mapped to a priority; the first port has PFC on priority 3"
expect "the second port does so, too" pause 1 on
passes flow-control
expect_contains "it reports the priority" "PFC on priority 3" of flow-control seen
mapping train0 rail0 "$good" 'infiniband: {node-guid: "02:00:00:00:00:00:0b:01", port-guid: "02:00:00:00:00:00:0b:02"}'
finds link-type "$rdma is ethernet"
rm "$vms"/train[01].yaml

section "libvirt"
expect_contains "libvirt-version reports the version" "$(virsh version | sed -n 's/Using library: libvirt //p'): hooks in qemu.d" \
    of libvirt-version seen
expect_contains "qemu-version reports the version" "$(virsh version | sed -n 's/Running hypervisor: QEMU //p')" of qemu-version seen
expect_equal "memory-lock passes" passed "$(of memory-lock result)"
finds hook none
expect_equal "hook-loaded is waived without a hook" waived "$(of hook-loaded result)"
# A link that vfpass did not create: libvirtd found no hook when it started, so it calls none.
printf '#!/bin/sh\ntouch /run/lab/hook-called\n' >/tmp/proof
install -m 0755 /tmp/proof /etc/libvirt/hooks/qemu.d/50-proof
ln -s /usr/sbin/vfpass-qemu-hook /etc/libvirt/hooks/qemu.d/vfpass
define_guest idle
start_once() {
    rm -f /run/lab/hook-called
    virsh --quiet start idle && virsh --quiet destroy idle
}
called() { test -e /run/lab/hook-called; }
start_calls() { start_once && called; }
finds hook-loaded "started before any hook was installed"
expect "a guest starts" start_once
expect_exit 1 "libvirtd does not call the hooks" called
cure hook-loaded
# The daemon handles SIGHUP asynchronously.
expect "libvirtd calls the hooks after the reload" wait_until 30 start_calls
expect_equal "hook passes" passed "$(of hook result)"
restart_libvirt
examine
expect_contains "hook-loaded recognizes a restart" "started after a hook was installed" of hook-loaded seen
expect "libvirtd calls the hooks after the restart" start_calls

section "one VM, by name and by UUID"
mapping idle rail0 "$good"
uuid=$(virsh domuuid idle)
expect_exit 1 "doctor --vm with a name" vfpass doctor --vm idle
vfpass doctor --json --vm idle >/tmp/by-name.json
vfpass doctor --json --vm "$uuid" >/tmp/by-uuid.json
expect_same_file "doctor --vm with a UUID reports the same" /tmp/by-name.json /tmp/by-uuid.json
expect "gpu-bar is waived without GPUs in the mapping" jq -e \
    '.findings[] | select(.key == "gpu-bar" and .result == "waived")' /tmp/by-name.json
expect "guest-memory-lock passes" jq -e '.findings[] | select(.key == "guest-memory-lock" and .result == "passed")' /tmp/by-name.json
virsh --quiet memtune idle --config --hard-limit 65536
vfpass doctor --json --vm "$uuid" >/tmp/doctor.json
expect_equal "guest-memory-lock fails with a hard limit that is too low" failed "$(of guest-memory-lock result)"
remedy=$(of guest-memory-lock remedy)
expect "\$ $remedy" bash -c "$remedy"
vfpass doctor --json --vm idle >/tmp/doctor.json
expect_equal "guest-memory-lock passes after the remedy" passed "$(of guest-memory-lock result)"
expect_exit 2 "a VM without a mapping" vfpass doctor --vm nobody

section "other programs that configure VFs"
# tests/cli/remedies_test.py runs the commands; here are the changes that remedies in words describe.
mkdir -p /etc/NetworkManager/system-connections /etc/netplan /etc/systemd/network /etc/udev/rules.d
profile=/etc/NetworkManager/system-connections/lab.nmconnection
printf '[connection]\nid=lab\nuuid=0f5e9a3c-1111-4222-8333-944455566688\ntype=ethernet\n\n[sriov]\ntotal-vfs=4\n' >"$profile"
finds networkmanager-sriov total-vfs=4
expect_equal "the remedy is NetworkManager's command" \
    "nmcli connection modify uuid 0f5e9a3c-1111-4222-8333-944455566688 remove sriov" "$(of networkmanager-sriov remedy)"
sed -i '/total-vfs/d' "$profile"
finds networkmanager-sriov "which means 0"
rm "$profile"
passes networkmanager-sriov
printf 'network:\n  ethernets:\n    %s:\n      virtual-function-count: 4\n' "$netdev" >"/etc/netplan/lab's.yaml"
finds netplan virtual-function-count
expect_equal "the remedy is netplan's command" "netplan set 'ethernets.$netdev.virtual-function-count=null'" "$(of netplan remedy)"
rm "/etc/netplan/lab's.yaml"
passes netplan
printf '[Match]\nOriginalName=x\n\n[SR-IOV]\nVirtualFunction=0\nVLANId=5\n[Link]\nMTUBytes=9000\nSR-IOVVirtualFunctions=4\n' \
    >/etc/systemd/network/lab.link
finds systemd-link SR-IOVVirtualFunctions=4
expect_contains "the remedy names the section" "[SR-IOV] section" of systemd-link remedy
printf '[Match]\nOriginalName=x\n\n[Link]\nMTUBytes=9000\n' >/etc/systemd/network/lab.link
passes systemd-link
echo 'ACTION=="add", ATTR{device/sriov_numvfs}="4"' >/etc/udev/rules.d/lab.rules
finds boot-scripts "sriov_numvfs in line 1"
echo 'ACTION=="add", ATTR{device/sriov_numvfs}=="4", NAME="x"' >/etc/udev/rules.d/lab.rules
passes boot-scripts
rm /etc/udev/rules.d/lab.rules
# The snapshot below has to keep this finding, but not the script.
printf '#!/bin/sh\n# secret\necho 4 >/sys/class/net/x/device/sriov_numvfs\n' >/etc/rc.local
finds boot-scripts "sriov_numvfs in line 3"

section "a snapshot of the host"
rm -f "$vms/train0.yaml" "$vms/idle.yaml" # a snapshot does not include mappings
examine
expect "snapshot" vfpass snapshot /tmp/snapshot
vfpass --sysroot /tmp/snapshot doctor --json >/tmp/replayed.json
# Nor does it include vfpass's database.
expect_equal "only there the devices in quarantine are not known" "passed waived" \
    "$(jq -r '.findings[] | select(.key == "quarantine").result' /tmp/doctor.json /tmp/replayed.json | xargs)"
for file in doctor replayed; do
    jq 'del(.findings[] | select(.key == "quarantine"))' "/tmp/$file.json" >"/tmp/$file.others.json"
done
expect_same_file "doctor reports the same other findings for the snapshot" /tmp/doctor.others.json /tmp/replayed.others.json

expect_exit 1 "the snapshot does not contain the script" grep -rq secret /tmp/snapshot
rm /etc/rc.local

section "a host without SR-IOV devices"
echo 1 >"/sys/bus/pci/devices/$gpu/remove"
for pf in "$good" "$switched"; do echo 0 >"/sys/bus/pci/devices/$pf/sriov_numvfs"; done
modprobe -r mlx5_ib mlx5_core
for pf in "$good" "$switched"; do echo 1 >"/sys/bus/pci/devices/$pf/remove"; done
expect_exit 0 "no check fails" vfpass doctor
expect_said "the summary says so" "ready: 0 checks failed"
finish
