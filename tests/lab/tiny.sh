# Sourced by tests that do not need a running guest system: machines without kernel, disk or agent, started with
# their processors stopped, so that fifty of them fit on two emulated cores.
# shellcheck shell=bash

# tiny_xml NAME [--memory MIB] [--device FILE]: prints the domain.
tiny_xml() {
    local name=$1 memory=32 devices=''
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --memory) memory=$2 ;;
        --device) devices+=$(cat "$2") ;;
        *) echo "tiny_xml: unknown option $1" >&2; return 2 ;;
        esac
        shift 2
    done
    cat <<XML
<domain type='kvm'>
  <name>$name</name>
  <memory unit='MiB'>$memory</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>
  <features><acpi/></features>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    $devices
  </devices>
</domain>
XML
}

# define_tiny NAME [options of tiny_xml]: defines the domain with its XML in libvirt's own order, see settle.
define_tiny() {
    local file=/run/lab/$1.define.xml
    tiny_xml "$@" >"$file" && virsh --quiet define "$file" && settle "$1"
}

# disk_xml FILE: a qcow2 disk, which internal snapshots need.
disk_xml() {
    cat <<XML
<disk type='file' device='disk'>
  <driver name='qemu' type='qcow2'/>
  <source file='$1'/>
  <target dev='vda' bus='virtio'/>
</disk>
XML
}

start_paused() { virsh --quiet start --paused "$1"; }

is_active() { grep -qE '^(running|paused)$' <(virsh domstate "$1" 2>/dev/null); }

# holds_vf NAME: the domain's QEMU has a VFIO group open.
holds_vf() { test -n "$(find "/proc/$(cat "/run/libvirt/qemu/$1.pid")/fd" -lname '/dev/vfio/[0-9]*')"; }

# qemu_of NAME: QEMU's PID, from the process list and not from libvirt's files.
qemu_of() { pgrep -f "qemu-system.* guest=$1,"; }

lease_state() { leases | jq -r "select(.[0] == \"$1\") | .[3]"; }

# in_xml NAME [--inactive]: whether the domain's XML has VFs of vfpass.
in_xml() {
    local name=$1
    shift
    grep -q ua-vfpass-rail <(virsh dumpxml "$@" "$name")
}

# stop_hard NAME: destroys the domain and waits until it is off and its release has run.
stop_hard() {
    virsh --quiet destroy "$1"
    wait_until 30 guest_off "$1"
}
