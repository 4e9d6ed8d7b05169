# iommufd as a mapping's choice, with a VF and a stand-in GPU: where kernel or libvirt lack it, attach names what is missing; a kernel or QEMU
# whose iommufd does not map the BARs of other devices is named by doctor; where both do, the guest's NIC reaches the GPU's memory. Debian's
# kernels have no iommufd. The second half runs with VFIO's modules as a kernel with CONFIG_IOMMUFD has them (lab/kernel/iommufd.kbuild).
# covers: src/plan/choose_backend.cpp src/domain/read_domain_facts.cpp src/commands/guest_devices.cpp src/doctor/*guest* lab/kernel
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

export AGENT_TIMEOUT=500
modules=/lab/build/modules-iommufd/lib/modules

# at_least VERSION SEEN
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
# entry BACKEND: writes the mapping.
entry() {
    printf 'version: 1\nvm: train0\ntopology: mirror\niommu-backend: %s\n' "$1"
    printf 'vfs:\n  - {name: rail0, pf: {pci: "%s"}, guest: {mtu: 9000}}\n' "$pf"
    printf 'gpus:\n  - {name: gpu0, pci: "%s"}\n' "$gpu"
} >"$vms/train0.yaml"
notes() { jq -r '.notes[]' <(vfpass plan train0 --json); }
# of KEY MEMBER: of doctor's finding.
of() { jq -r ".findings[] | select(.key == \"$1\").$2" <(vfpass doctor --vm train0 --json); }
peers() { of peer-mapping "$1"; }
qemu_files() { find "/proc/$(pgrep -f 'qemu-system.* guest=train0,')/fd" -lname "$1"; }
persistent_xml() { virsh dumpxml --inactive --security-info train0; }

section "the host"
install_vfpass
require "mlx5_core loads" load_mlx5
# The first PF and the first GPU are on node 0, below one switch.
pf=$(pf_address 0) gpu=$(lspci -D -d 10de: | head -n 1 | cut -d' ' -f1) other=$(lspci -D -d 10de: | tail -n 1 | cut -d' ' -f1)
make_vfs "$pf" 1
ip link set dev "$(pf_netdev 0)" up
start_libvirt
libvirt=$(virsh version --daemon | sed -n 's/^Running against daemon: //p')
qemu=$(qemu-system-x86_64 --version | sed -n 's/.* version \([0-9.]*\).*/\1/p')
kernel=$(uname -r | cut -d. -f1,2)
echo "   libvirt $libvirt, QEMU $qemu, Linux $kernel"
define_guest train0 --gpu
settle train0
expect "hook install" vfpass hook install

section "the mapping chooses, on Debian's kernel"
entry auto
expect_contains "auto: containers, which map BARs everywhere" "iommu-backend: auto: containers" notes
entry iommufd
expect_exit 5 "attach refuses iommufd" vfpass attach train0
if ! at_least 12.2 "$libvirt"; then
    expect_said "it names what is missing" "needs libvirt 12.2 or newer"
    expect_said "it names this host's version" "libvirt ${libvirt%.*}"
fi
expect_said "it names what the kernel lacks" "the kernel has no iommufd for VFIO devices"
expect_equal "doctor reports it" failed "$(of iommufd result)"
entry auto
expect "attach with containers" vfpass attach train0
expect_equal "doctor has no problem with them" passed "$(peers result)"
expect_contains "it names the devices behind QEMU's switch" "QEMU's switch ports (x3130) above" of guest-nccl-topology seen
# As an administrator can write it for any libvirt.
arguments="<qemu:commandline><qemu:arg value='-object'/><qemu:arg value='iommufd,id=fd0'/>"
arguments+="<qemu:arg value='-device'/><qemu:arg value='vfio-pci,host=$other,iommufd=fd0'/></qemu:commandline>"
persistent_xml >/tmp/attached.xml
sed -e "s|<domain type='kvm'[^>]*>|<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>|" \
    -e "s|</domain>|$arguments</domain>|" /tmp/attached.xml >/tmp/iommufd.xml
expect "a device with iommufd on QEMU's command line" virsh --quiet define /tmp/iommufd.xml
expect_equal "doctor reports that it cannot start" failed "$(of iommufd result)"
expect_contains "it names the device" "vfio-pci $other" of iommufd seen
expect_exit 5 "plan refuses it" vfpass plan train0
expect_said "it names the device, too" "the domain requests iommufd for vfio-pci $other: the kernel has no iommufd"

if ! at_least 6.19 "$kernel" || ! at_least 11.0 "$qemu"; then
    section "iommufd that does not map the BARs of other devices"
    expect_equal "doctor reports it" failed "$(peers result)"
    expect_contains "it names the kernel" "Linux $kernel" peers seen
    expect_contains "it names containers as the remedy" "type 1 containers map BARs" peers remedy
fi
expect "the command line is taken back" virsh --quiet define /tmp/attached.xml
expect "detach" vfpass detach train0
expect "no lease" no_lease
[ -d "$modules" ] || finish

section "a kernel with iommufd"
expect "VFIO is unloaded" modprobe -r vfio_pci vfio_iommu_type1
expect "the other modules take its place" mount --bind "$modules" /lib/modules
before=$(persistent_xml)
entry auto
expect_contains "auto still chooses containers" "iommu-backend: auto: containers" notes
entry iommufd
expect_contains "plan says why iommufd is possible" "iommufd" notes
expect "attach" vfpass attach train0
expect_contains "libvirt keeps the element" "<iommufd enabled='yes'/>" persistent_xml
expect "virsh start" virsh --quiet start train0
expect "QEMU has the devices of iommufd" test -n "$(qemu_files '/dev/vfio/devices/*')"
expect_equal "it has no container" "" "$(qemu_files '/dev/vfio/[0-9]*')"
expect "the guest's agent answers" wait_for_agent train0 900
expect_contains "its RDMA device is up" uverbs0 rdma_up train0 10.99.0.1
expect_equal "doctor has no problem with it" passed "$(peers result)"
expect_equal "nor with the kernel" passed "$(of iommufd result)"
document=$(vfpass verify train0 --json --bytes 64 --iterations 20000 --no-tools --relaxed-ordering off --timeout 1800 2>/tmp/verify.log)
seen data-host passed ""
seen data-gpu passed "via dma-buf"
seen data-gpu-to-host passed ""
seen data-host-to-gpu passed ""
expect "virsh destroy" virsh --quiet destroy train0
expect "detach" vfpass detach train0
expect_equal "the domain's XML is restored" "$before" "$(persistent_xml)"
expect "no lease" no_lease
finish
