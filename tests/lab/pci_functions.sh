# PCI functions by address (`gpus:`) together with a VF: into a guest and back, and refusals.
# covers: src/plan/*function* src/plan/check_device.cpp src/host/*/*reset* src/host/sysfs/pci_function.*
# covers: src/host/drivers/driver_modules.cpp src/host/holders/mount_table.*
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

single=0000:03:00.0 disk=0000:04:00.0 first=0000:05:00.0 second=0000:05:00.1 port=0000:00:12.0

# mapping_with NAME=ADDRESS...: writes a mapping with VF rail0 and these functions.
mapping_with() {
    local entry
    mapping train0 rail0 "$pf" 'index: 1'
    echo 'gpus:' >>"$vms/train0.yaml"
    for entry in "$@"; do
        printf '  - {name: %s, pci: "%s"}\n' "${entry%%=*}" "${entry#*=}" >>"$vms/train0.yaml"
    done
}

is_on() { test "$(driver_of "$1")" = "$2"; }

all_reserved() { has_lease reserved && ! has_lease running; }

snapshot_functions() {
    local function
    for function in "$single" "$disk" "$first" "$second" "$(vf_of "$pf" 1)"; do
        echo "$function: driver $(driver_of "$function")," \
            "override $(cat "$pci_devices/$function/driver_override")"
    done >"$1"
}

xml_to() { virsh dumpxml --inactive --security-info train0 >"$1"; }

untouched() {
    snapshot_functions /tmp/functions.after
    xml_to /tmp/xml.after
    expect_same_file "$1: drivers and overrides are restored" \
        /tmp/functions.before /tmp/functions.after
    expect_same_file "$1: the XML is restored" /tmp/xml.before /tmp/xml.after
    expect "$1: no lease is left" no_lease
}

# refused CODE TEXT NAME=ADDRESS...: attach of a mapping with these functions.
refused() {
    local code=$1 text=$2
    shift 2
    mapping_with "$@"
    expect_exit "$code" "refused: $text" vfpass attach train0
    expect_said "the error: $text" "$text"
}

section "a host with functions in use, and a q35 domain"
install_vfpass
modprobe -a xhci_pci virtio_blk ext4 dm_mod
load_mlx5
pf=$(pf_address 0) other=$(pf_address 1)
make_vfs "$pf" 4
make_vfs "$other" 2
expect "the single function is bound to the host's driver" wait_until 20 is_on "$single" xhci_hcd
expect_equal "the pair shares an IOMMU group" "$(iommu_group_of "$first")" "$(iommu_group_of "$second")"
expect "the disk has a block device" wait_until 20 test -b /dev/vda
echo xhci_hcd >"$pci_devices/$second/driver_override"
start_libvirt
define_guest train0
settle train0
snapshot_functions /tmp/functions.before
xml_to /tmp/xml.before

section "a mapping with functions only"
printf 'version: 1\nvm: train0\ngpus:\n  - {name: gpu0, pci: "%s"}\n' "$single" >"$vms/train0.yaml"
expect "attach" vfpass attach train0
expect "the function is on vfio-pci" is_on "$single" vfio-pci
expect "status reports no drift" vfpass status train0
expect "detach" vfpass detach train0
untouched "after a function alone"

section "refusals"
refused 2 "this host has no PCI function 0000:7f:00.0" gpu0=0000:7f:00.0
refused 2 "is a VF of PF $other" "gpu0=$(vf_of "$other" 0)"
refused 2 "is the PF of rail0" "gpu0=$pf"
refused 5 "is a PF with 2 VFs" "gpu0=$other"
refused 5 "is a bridge" "gpu0=$port"
refused 5 "shares IOMMU group $(iommu_group_of "$first") with $second" "gpu0=$first"
expect_said "the remedy has the line to add" "{name: gpu0-usb, pci: \"$second\"}"
refused 2 "the name \`rail0\` is used below \`gpus:\` and \`vfs:\`" "rail0=$single"
mke2fs -q /dev/vda && mkdir -p /tmp/data && mount /dev/vda /tmp/data
refused 5 "vda is mounted at /tmp/data" "gpu0=$disk"
umount /tmp/data
mkswap /dev/vda >/dev/null && swapon /dev/vda
refused 5 "vda is swap space" "gpu0=$disk"
swapoff /dev/vda
dmsetup create spare --table '0 2048 linear /dev/vda 0' --noudevsync
refused 5 "vda is part of dm-0" "gpu0=$disk"
dmsetup remove --noudevsync spare
define_with foreign "$single"
refused 5 "$single is claimed by domain foreign" "gpu0=$single"
virsh --quiet undefine foreign
untouched "after the refusals"

section "an unused disk can be attached, whatever users mount"
mapping_with "disk0=$disk"
attack mounts "$disk"
expect "attach" vfpass attach train0
end_attack
expect "the function is on vfio-pci" is_on "$disk" vfio-pci
expect "detach" vfpass detach train0
untouched "after the disk"

section "check and plan"
mapping_with "gpu0=$single" "pair0=$first" "pair1=$second"
expect "check accepts the mapping" vfpass check train0
expect_exit 3 "plan shows the steps" vfpass plan train0
expect_said "plan names the function" "PCI function $single as gpu0"
expect_said "plan shows the hostdev" "ua-vfpass-gpu0"
untouched "after the plan"

section "attach"
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
expect_said "attach prints the function's guest address" "gpu0: PCI function $single, in the guest at"
for function in "$single" "$first" "$second"; do
    expect "$function is on vfio-pci" is_on "$function" vfio-pci
done
xml_to /tmp/xml.first
expect "a second attach succeeds" vfpass attach train0
xml_to /tmp/xml.second
expect_same_file "the XML is unchanged, byte for byte" /tmp/xml.first /tmp/xml.second
expect "status reports no drift" vfpass status train0
expect_said "status names the function" "gpu0   $single"
define_guest second
sed 's/vm: train0/vm: second/; s/index: 1/index: 2/' "$vms/train0.yaml" >"$vms/second.yaml"
expect_exit 2 "a second mapping for the same function" vfpass attach second
mv "$vms/train0.yaml" /tmp/
expect_exit 5 "without the first mapping the lease is still respected" vfpass attach second
expect_said "the error names the owner" "is leased to domain train0"
rm "$vms/second.yaml"
mv /tmp/train0.yaml "$vms/"

section "start through the hook"
expect "virsh start" virsh start train0
expect "the function's lease is running" sh -c \
    "vfpass status --json | jq -e '.leases[] | select(.entry == \"gpu0\" and .state == \"running\")'"
expect "attach to the running domain changes nothing" vfpass attach train0
expect_exit 6 "detach from a running guest is refused, because no agent can report the holders of a function" vfpass detach train0
expect "status reports no drift" vfpass status train0
expect "the guest's agent answers" wait_for_agent train0 400
# qemu-xhci is 1b36:000d; the guest has none of its own.
expect_equal "the guest has the three functions" 3 "$(guest_shell train0 \
    "grep -l 0x000d /sys/bus/pci/devices/*/device | xargs -n 1 dirname |
        while read -r device; do cat \$device/vendor; done | grep -c 0x1b36")"

section "stop, and start with the functions bound to the host's drivers as after a reboot"
virsh destroy train0 >/dev/null
expect "the leases are reserved" wait_until 20 all_reserved
expect "the functions stay on vfio-pci" is_on "$single" vfio-pci
bind_to "$single" xhci_hcd && echo >"$pci_devices/$single/driver_override"
expect "status reports no drift" vfpass status train0
expect "virsh start" virsh start train0
expect "prepare has bound the function to vfio-pci" is_on "$single" vfio-pci
virsh destroy train0 >/dev/null
expect "the leases are reserved" wait_until 20 all_reserved

section "detach restores everything"
expect "detach" vfpass detach train0
untouched "after detach"
expect "a second detach changes nothing" vfpass detach train0

section "power cut; functions_after_reboot.sh continues"
cp /tmp/xml.before /lab/state/xml.before
mapping_with "gpu0=$single"
expect "attach" vfpass attach train0
expect "the function is on vfio-pci" is_on "$single" vfio-pci
save_state
finish
