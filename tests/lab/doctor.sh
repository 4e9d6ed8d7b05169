# The doctor on a real kernel: the first broken link first, and every finding that its printed remedy, typed as it
# is, makes go away.
# covers: src/doctor src/cli/doctor.cpp src/report/doctor_report.cpp
# shellcheck shell=bash disable=SC2016
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_standin
good=$(pf_address 0) netdev=$(pf_netdev 0) switched=$(pf_address 1)
make_vfs "$good" 2
make_vfs "$switched" 2
ip link set dev "$netdev" up
ip link set dev "$(pf_netdev 1)" up
# A daemon that finds no hook at all when it starts.
start_libvirt --no-mailbox
unload_kvm

examine() { vfpass doctor --json >/tmp/doctor.json; }
# of KEY FIELD: of the finding that failed, otherwise of the first.
of() {
    jq -r --arg key "$1" "[.findings[] | select(.key == \$key)] | sort_by(.result != \"failed\")[0].$2 // empty" \
        /tmp/doctor.json
}
first_broken() { jq -r '[.findings[] | select(.result == "failed")][0].key' /tmp/doctor.json; }
# finds KEY TEXT: it failed and says what was seen.
finds() {
    examine
    expect_equal "$1 fails" failed "$(of "$1" result)"
    expect_contains "$1 says why" "$2" of "$1" seen
}
# cure KEY: types its remedy.
cure() {
    local remedy
    remedy=$(of "$1" remedy)
    expect "\$ $remedy" bash -c "$remedy"
    examine
    expect_equal "$1 is mended" passed "$(of "$1" result)"
}

section "this host as it is"
examine
expect_equal "the processor's flag" passed "$(of cpu-virtualization result)"
expect_contains "the IOMMU's groups are counted" \
    "$(find /sys/kernel/iommu_groups -mindepth 1 -maxdepth 1 | wc -l) groups" of iommu seen
expect_equal "interrupts are remapped" "passed IR-" "$(of interrupt-remapping result) $(of interrupt-remapping seen | cut -c1-3)"
expect_equal "the first broken link is the first of the chain" kvm "$(first_broken)"
expect_exit 1 "text, too" vfpass doctor
expect_said "first" "first broken link: kvm"
# modprobe prints nothing: the emulated processor has SVM.
cure kvm
hold_kvm
expect_equal "the next link is the first now" iommu-group "$(first_broken)"

section "the switch without ACS"
expect_contains "VFs below it share a group" "group $(iommu_group_of "$(vf_of "$switched" 0)") with" of iommu-group seen
expect "VFs of the other PF do not" jq -e --arg netdev "$netdev" \
    '.findings[] | select(.key == "iommu-group" and .result == "passed" and .subject == $netdev)' /tmp/doctor.json
gpu=$(lspci -D -d 1002: | cut -d' ' -f1)
above=$(basename "$(dirname "$(readlink -f "/sys/bus/pci/devices/$gpu")")")
root=$(basename "$(dirname "$(dirname "$(dirname "$(readlink -f "/sys/bus/pci/devices/$gpu")")")")")
expect_equal "ACS" failed "$(of acs result)"
expect_contains "its port has none" "$above has no ACS" of acs seen
expect_contains "lspci agrees" no bash -c "lspci -vvs $above | grep -q 'Access Control Services' || echo no"
expect_contains "the argument names all ports" "xx111x1@$root" of acs remedy
# Debian 12's kernel is older than the argument, Debian 13's than its form for several ports.
case $(uname -r) in
6.1.*) expect_contains "and that this kernel is too old" "needs Linux 6.11, this is 6.1" of acs remedy ;;
6.12.*) expect_contains "and that this kernel takes one port" "for several ports, this is 6.12" of acs remedy ;;
esac
# The root port's bits, as lspci writes them.
control=$(lspci -vvs "$root" | sed -n 's/.*ACSCtl:\t*//p')
expect_contains "lspci shows the root port's ACS" "SrcValid+" echo "$control"
expect_equal "no complaint about the root port" "" "$(of acs seen | grep -o "$root [01]* for" || true)"
expect_equal "the PF has no ATS" failed "$(of ats result)"

section "VFIO's ways around the IOMMU"
modprobe vfio-pci && modprobe vfio_iommu_type1
echo Y >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts
finds unsafe-interrupts "allow_unsafe_interrupts=Y"
expect_equal "before all that comes later in the chain" unsafe-interrupts "$(first_broken)"
cure unsafe-interrupts
echo 'options vfio_iommu_type1 allow_unsafe_interrupts=1' >/etc/modprobe.d/lab.conf
finds unsafe-interrupts "allow_unsafe_interrupts=1"
cure unsafe-interrupts
# Debian builds its kernel without it, so there is no parameter to be set now.
echo 'options vfio enable_unsafe_noiommu_mode=1' >/etc/modprobe.d/lab.conf
finds no-iommu-mode "enable_unsafe_noiommu_mode=1"
cure no-iommu-mode

section "the eswitch, by devlink"
# The stand-in has no devlink: that is never a pass.
expect_equal "its mode is not observable" "not_observable devlink shows no eswitch mode" \
    "$(of eswitch result) $(of eswitch seen)"

section "the PF's link and its MTU"
mapping train0 rail0 "$good" 'guest: {mtu: 4000}'
ip link set dev "$netdev" down
examine
expect_contains "a port that is down" "$netdev down" jq -r \
    '[.findings[] | select(.key == "pf-link" and .result == "failed")][0].seen' /tmp/doctor.json
cure pf-link
finds pf-mtu "$netdev has 1500"
cure pf-mtu

section "libvirt"
expect_contains "libvirt's version" "$(virsh version | sed -n 's/Using library: libvirt //p'): hooks in qemu.d" \
    of libvirt-version seen
expect_contains "QEMU's" "$(virsh version | sed -n 's/Running hypervisor: QEMU //p')" of qemu-version seen
expect_equal "the daemon raises limits of memory" passed "$(of memory-lock result)"
finds hook none
expect_equal "whether it is loaded is no question yet" waived "$(of hook-loaded result)"
# A link that somebody else made: libvirtd has found no hook when it started, and calls none.
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
finds hook-loaded "started before there was any hook"
expect "a start" start_once
expect_exit 1 "indeed, libvirtd calls none" called
cure hook-loaded
# The daemon takes its SIGHUP when it comes to it.
expect "now it does" wait_until 30 start_calls
expect_equal "the hook" passed "$(of hook result)"
restart_libvirt
examine
expect_contains "a restart is as good" "started when there was a hook" of hook-loaded seen
expect "and it calls it" start_calls

section "one VM, by name and by UUID"
mapping idle rail0 "$good"
uuid=$(virsh domuuid idle)
expect_exit 1 "by name" vfpass doctor --vm idle
vfpass doctor --json --vm idle >/tmp/by-name.json
vfpass doctor --json --vm "$uuid" >/tmp/by-uuid.json
expect_same_file "by UUID the same" /tmp/by-name.json /tmp/by-uuid.json
expect "no GPU is asked for, so none is looked at" jq -e \
    '.findings[] | select(.key == "gpu-bar" and .result == "waived")' /tmp/by-name.json
expect "its memory is" jq -e '.findings[] | select(.key == "guest-memory-lock" and .result == "passed")' /tmp/by-name.json
virsh --quiet memtune idle --config --hard-limit 65536
vfpass doctor --json --vm "$uuid" >/tmp/doctor.json
expect_equal "too little memory may be locked" failed "$(of guest-memory-lock result)"
remedy=$(of guest-memory-lock remedy)
expect "\$ $remedy" bash -c "$remedy"
vfpass doctor --json --vm idle >/tmp/doctor.json
expect_equal "enough" passed "$(of guest-memory-lock result)"
expect_exit 2 "a VM without a mapping" vfpass doctor --vm nobody

section "rivals"
mkdir -p /etc/NetworkManager/system-connections /etc/netplan /etc/systemd/network /etc/udev/rules.d
printf '[sriov]\ntotal-vfs=4\n' >/etc/NetworkManager/system-connections/lab.nmconnection
finds networkmanager-sriov total-vfs
cure networkmanager-sriov
printf 'network:\n  ethernets:\n    %s:\n      virtual-function-count: 4\n' "$netdev" >"/etc/netplan/lab's.yaml"
finds netplan virtual-function-count
cure netplan
printf '[Match]\nOriginalName=x\n\n[SR-IOV]\nVirtualFunction=0\nVLANId=5\n[Link]\nMTUBytes=9000\nSR-IOVVirtualFunctions=4\n' \
    >/etc/systemd/network/lab.link
finds systemd-link sr-iovvirtualfunctions
cure systemd-link
expect_equal "and nothing else is gone" '[Match] OriginalName=x  [Link] MTUBytes=9000' \
    "$(tr '\n' ' ' </etc/systemd/network/lab.link | sed 's/ $//')"
echo 'ACTION=="add", ATTR{device/sriov_numvfs}="4"' >/etc/udev/rules.d/lab.rules
finds boot-scripts sriov_numvfs
cure boot-scripts

section "a snapshot says the same"
rm -f "$vms/train0.yaml" "$vms/idle.yaml" # a snapshot has no mappings
examine
expect "snapshot" vfpass snapshot /tmp/snapshot
vfpass --sysroot /tmp/snapshot doctor --json >/tmp/replayed.json
expect_same_file "every finding" /tmp/doctor.json /tmp/replayed.json

section "a host without any of it"
echo 1 >"/sys/bus/pci/devices/$gpu/remove"
for pf in "$good" "$switched"; do echo 0 >"/sys/bus/pci/devices/$pf/sriov_numvfs"; done
rmmod mlx5_core
expect_exit 0 "nothing is broken" vfpass doctor
expect_said "it says so" "fit: 0 checks failed"
finish
