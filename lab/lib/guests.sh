# shellcheck shell=bash disable=SC2154
# Sourced by lib.sh: guests, defined as users do without vfpass.

# guest_xml NAME [--rdma] [--gpu] [--ovmf] [--vcpus N] [--memory MIB] [--device FILE] [--uuid UUID] [--no-agent]: prints the domain.
# Every device has a fixed address on the root bus, so that there is no spare root port; the XML in FILE is added to the devices. The
# guest has the kernel's own mlx5_core, with --rdma also mlx5_ib and libibverbs, with --gpu these and what a stand-in GPU needs. --ovmf
# boots it with UEFI firmware.
guest_xml() {
    local name=$1 memory=224 variant='' devices='' uuid='' agent edits=()
    agent=$(cat "$lab_directory/config/agent.xml")
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --rdma) memory=320 variant=-rdma ;;
        --gpu) memory=384 variant=-gpu ;;
        --ovmf) memory=512; mapfile -t -O "${#edits[@]}" edits < <(ovmf_edits "$name") ;;
        --vcpus) edits+=(-e "s|>[0-9]*</vcpu>|>$2</vcpu>|"); shift ;;
        --memory) memory=$2; shift ;;
        --device) devices+=$(cat "$2")$'\n'; shift ;;
        --uuid) uuid="<uuid>$2</uuid>"; shift ;;
        --no-agent) agent='' ;;
        *) echo "guest_xml: unknown option $1" >&2; return 2 ;;
        esac
        shift
    done
    local template
    template=$(cat "$lab_directory/config/$guest_template")
    template=${template//@NAME@/"$name"} template=${template//@MEMORY@/"$memory"}
    template=${template//@UUID@/"$uuid"} template=${template//@AGENT@/"$agent"}
    # The guest's TSC frequency is the host's.
    template=${template//@CLOCK@/"$(grep -o 'tsc_early_khz=[0-9]*' /proc/cmdline)"}
    template=${template//@INITRAMFS@/"guest$variant.cpio"}
    printf '%s\n' "${template//@DEVICES@/"$devices"}" | sed -e '' "${edits[@]}"
}

# ovmf_edits NAME: arguments for sed. EDK II starts a kernel through its EFI stub, which the uncompressed kernel lacks. It writes
# CR8, where QEMU's emulation of SVM fails an assertion while a virtual interrupt is pending (bql_locked() in
# tcg_handle_interrupt, 7.2 and 10.0). Without KVM's interrupt controllers, KVM intercepts each such write
# (svm_update_cr8_intercept).
ovmf_edits() {
    local loader="<loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>"
    local nvram="<nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd'>/var/lib/lab/$1.nvram</nvram>"
    local schema="xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'"
    local options="<qemu:commandline><qemu:arg value='-machine'/><qemu:arg value='kernel_irqchip=off'/></qemu:commandline>"
    mkdir -p /var/lib/lab
    printf '%s\n' -e "s|<domain type='kvm'>|<domain type='kvm' $schema>|" -e "s|</domain>|$options&|" \
        -e "s|/kernel/vmlinux<|/kernel/vmlinuz<|" -e "s|<kernel>|$loader$nvram&|"
}

# define_guest NAME [options of guest_xml]
define_guest() {
    local file=/run/lab/$1.define.xml
    guest_xml "$@" >"$file" && virsh --quiet define "$file"
}

# hostdev_xml VF_ADDRESS [PORT_INDEX] [managed]: a function on its own root port, as written by
# hand. PORT_INDEX is the port's index and its bus in the guest (default: 1).
hostdev_xml() {
    local port=${2:-1} managed=${3:-no} slot
    slot=$(printf '0x%02x' $((0x10 + port - 1)))
    cat <<XML
<controller type='pci' index='$port' model='pcie-root-port'>
  <address type='pci' domain='0x0000' bus='0x00' slot='$slot' function='0x0'/>
</controller>
<hostdev mode='subsystem' type='pci' managed='$managed'>
  <source>$(address_xml "$1")</source>
  <address type='pci' domain='0x0000' bus='$(printf '0x%02x' "$port")' slot='0x00' function='0x0'/>
</hostdev>
XML
}

# address_xml 0000:01:00.3: the address element in libvirt's format.
address_xml() {
    local domain=${1%%:*} rest=${1#*:}
    printf "<address domain='0x%s' bus='0x%s' slot='0x%s' function='0x%s'/>" \
        "$domain" "${rest%%:*}" "$(cut -d. -f1 <<<"${rest#*:}")" "${rest#*.}"
}

guest_running() { [ "$(virsh domstate "$1" 2>/dev/null)" = running ]; }

guest_off() { [ "$(virsh domstate "$1" 2>/dev/null)" = 'shut off' ]; }

# shut_down_guest NAME [SECONDS]: shuts the guest down through its agent and waits; fails after SECONDS.
shut_down_guest() {
    virsh --quiet shutdown "$1" --mode agent || return
    wait_until "${2:-90}" guest_off "$1"
}
