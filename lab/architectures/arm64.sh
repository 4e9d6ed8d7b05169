# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by lab/prepare, lab/run and, in the host under test, lab/lib.sh: what is different for arm64.

emulator=qemu-system-aarch64 emulator_package=qemu-system-arm
libraries=lib/aarch64-linux-gnu loader=lib/ld-linux-aarch64.so.1
# What runs the architecture's programs here, and what compiles them: both are in the root of scripts/build-arm64.
cross_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build-arm64-root
run_program=("$cross_root/usr/bin/qemu-aarch64") compiler=aarch64-linux-gnu-gcc
guest_template=guest-arm64.xml guest_variants=('' rdma)

# virtualization=on: the host under test starts at EL2, for KVM. Without pauth-impdef the emulator spends most of its time with the
# cipher of pointer authentication.
# shellcheck disable=SC2054  # the commas are QEMU's
emulated_machine=(-M "virt,virtualization=on,gic-version=3,iommu=smmuv3" -cpu max,pauth-impdef=on)

build_directory() { echo build-arm64; }

kernel_options() { echo "console=ttyAMA0 iommu.passthrough=1"; }

# open_kvm: in the host under test, whose kernel contains it.
open_kvm() { [ -c /dev/kvm ]; }

# host_packages FILE...: turns a list of packages for amd64 into one for arm64, without UEFI firmware, network managers and Ansible,
# whose tests do not run there.
host_packages() {
    sed -e 's/^qemu-system-x86$/qemu-system-arm/' -e '/^ovmf$/d' -e '/^network-manager$/d' -e '/^ansible-core$/d' "$@"
    echo busybox-static
}

# use_architecture RELEASE DIRECTORY: makes apt-get and apt-cache use RELEASE's packages for arm64, with their state in DIRECTORY.
use_architecture() {
    with_sources "$1" "$2"
    printf 'APT::Architecture "arm64";\nAPT::Architectures "arm64";\n' >>"$APT_CONFIG"
    apt-get -qq update
}
