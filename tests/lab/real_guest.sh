# real_guest.sh RELEASE MANAGER: vfpass guest-setup in a guest with Debian's user space and a real network manager:
# setup with a name for the interface, reboot, a second VF, --undo, and another reboot. After each step the kernel and the
# manager have to agree.
# covers: src/guest/setup src/guest/setup/guest_files.cpp src/guest/setup/interface_names.cpp lab/image
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/real_guest_views.sh
source /vfpass/tests/lab/real_guest_views.sh

release=$1 manager=$2
# A guest that shares the processor responds slowly.
export AGENT_TIMEOUT=240
agent_timeout=900

set_up() { vfpass guest-setup train0 --timeout 900 "$@"; }

# write_mapping ENTRY...: writes a mapping with rail0, whose interface is fast0, and with rail1 if two entries are given.
write_mapping() {
    mapping train0 rail0 "$pf" 'index: 0' 'guest: {address: 192.168.100.10/24, mtu: 9000, name: fast0}'
    [ $# = 1 ] || cat >>"$vms/train0.yaml" <<YAML
  - {name: rail1, pf: {pci: "$pf"}, index: 1, guest: {address: "fd00:200::10/64", mtu: 4000}}
YAML
}

mac_of() { vf_attribute 0 "$1" address; }

# The interface's name changes; the MAC identifies the interface.
netdev_in_guest() { guest_shell train0 "cd /sys/class/net && grep -l '^$(mac_of "$1")' */address | cut -d/ -f1"; }

# With netplan the name takes effect at once, otherwise at the guest's next start.
renames_now() { [ "${manager#netplan}" != "$manager" ]; }

# agrees INDEX ADDRESS MTU WHEN: address and MTU according to the kernel and to the guest's network manager.
agrees() {
    local name
    name=$(netdev_in_guest "$1")
    expect "$4: ip shows $2 on VF $1" wait_until 240 kernel_has "$name" "$2" "$3"
    # ifupdown knows interfaces by name only, so it does not know this one before its new name.
    [ "$manager,$name" = "ifupdown,$original" ] || manager_agrees "$name" "$2" "$3" "$4: VF $1"
}

section "a guest with $release and $manager"
install_vfpass
load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
start_libvirt
cat >/tmp/port.xml <<'XML'
<controller type='pci' index='8' model='pcie-root-port'>
  <address type='pci' domain='0x0000' bus='0x00' slot='0x18' function='0x0'/>
</controller>
XML
require "the guest is defined" define_real_guest train0 "$release" "$manager" --device /tmp/port.xml
write_mapping rail0
expect "hook install" vfpass hook install
require "attach" vfpass attach train0
require "virsh start" virsh start train0
require "the guest's agent answers" wait_for_agent train0 $agent_timeout
took "the guest's start"
print_guest_versions train0 "$release" "$manager"
expect "the VF is bound to the guest's driver" wait_until 240 guest_drives train0 1
original=$(netdev_in_guest 0)
expect "systemd has named the interface" test "${original#en}" != "$original"
guest_files >/tmp/files.found
guest_interface "$original" >/tmp/interface.found

section "guest-setup"
expect_exit 3 "guest-setup without --yes" set_up
expect_said "the diff has the manager's file" "$(manager_file)"
if renames_now; then
    expect_said "the name is an immediate change" "name $original -> fast0"
else
    expect_said "the diff has the .link file" "+++ /etc/systemd/network/10-vfpass-rail0.link"
    expect_said "the note says when the name takes effect" "$original is named fast0 from the guest's next start"
fi
guest_files >/tmp/files.now
expect_same_file "no file is written" /tmp/files.found /tmp/files.now
expect "guest-setup --yes" set_up --yes
expected=$original
if renames_now; then expected=fast0; fi
expect_equal "the interface has the name of the running guest" "$expected" "$(netdev_in_guest 0)"
agrees 0 192.168.100.10/24 9000 "after guest-setup"
expect_contains "a second run changes nothing" "nothing to do" set_up
took "the section"

section "the guest reboots"
expect "the guest reboots through systemd and its agent answers" reboot_real_guest train0 $agent_timeout
took "the reboot"
expect_equal "the interface has the mapping's name" fast0 "$(netdev_in_guest 0)"
agrees 0 192.168.100.10/24 9000 "after the reboot"
expect_contains "guest-setup changes nothing" "nothing to do" set_up
took "the whole section"

section "plugging a second VF"
write_mapping rail0 rail1
expect "attach" vfpass attach train0
expect "both VFs are bound to the guest's driver" wait_until 120 guest_drives train0 2
expect "guest-setup --yes" set_up --yes
agrees 0 192.168.100.10/24 9000 "with two VFs"
agrees 1 fd00:200::10/64 4000 "with two VFs"
expect_contains "a second run changes nothing" "nothing to do" set_up
second=$(netdev_in_guest 1)
took "the section"

section "undo"
expect "undo" set_up --undo --yes
if renames_now; then
    expect_equal "the interface has its former name" "$original" "$(netdev_in_guest 0)"
else
    expect_said "the note says when the former name returns" "fast0 is named $original from the guest's next start"
fi
name=$(netdev_in_guest 0)
guest_files >/tmp/files.now
expect_same_file "every file is restored" /tmp/files.found /tmp/files.now
guest_interface "$name" >/tmp/interface.now
expect_same_file "the interface is restored" /tmp/interface.found /tmp/interface.now
for name in "$name" "$second"; do
    expect "ip shows no address on $name" kernel_has_none "$name"
    manager_forgot "$name"
done
expect_contains "a second undo changes nothing" "nothing to do" set_up --undo
took "the section"

section "the guest reboots after the undo"
expect "the guest reboots through systemd and its agent answers" reboot_real_guest train0 $agent_timeout
expect_equal "the interface has its former name" "$original" "$(netdev_in_guest 0)"
took "the section"
finish
