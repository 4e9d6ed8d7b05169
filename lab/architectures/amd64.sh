# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by lab/prepare, lab/run and, in the host under test, lab/lib.sh: what is different for amd64.

emulator=qemu-system-x86_64 emulator_package=qemu-system-x86
libraries=lib/x86_64-linux-gnu loader=lib64/ld-linux-x86-64.so.2
# What runs the architecture's programs here, and what compiles them.
run_program=() cross_root='' compiler=gcc
guest_template=guest.xml guest_variants=('' rdma gpu)

# The processor has AMD's SVM with nested paging.
# aw-bits has the value of a server: with QEMU's 39 bits, VFIO cannot map the addresses that OVMF assigns to a VF's BARs, and
# the guest's QEMU exits.
# shellcheck disable=SC2054  # the commas are QEMU's
emulated_machine=(-M q35 -cpu max,la57=off -device intel-iommu,intremap=on,caching-mode=on,aw-bits=48)

# build_directory RELEASE: where in the checkout programs of that release are built.
build_directory() { build_of "$1"; }

# Without tsc=reliable the clock source is the HPET: each time the guest's emulator reads the time, which is half of
# its work, takes a system call, an exit and QEMU's big lock.
# Without tsc_early_khz the kernel calibrates the TSC with a timer that is emulated late on a busy machine; in one boot
# the clock advanced by 10 ms in 20 s.
kernel_options() {
    echo "console=ttyS0 intel_iommu=on iommu=pt no_timer_check tsc=reliable tsc_early_khz=$("$build/tsc_khz")"
}

# open_kvm: in the host under test.
open_kvm() { modprobe kvm-amd && hold_kvm; }
