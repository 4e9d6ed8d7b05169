# real_guest.sh RELEASE MANAGER: vfpass guest-setup in a guest with Debian's own user land and a real network manager:
# set up, rebooted, a second VF plugged in, and undone. After each step the kernel and the manager have to agree.
# covers: src/guest/*setup* src/guest/network_files.cpp lab/image
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/real_guest_views.sh
source /vfpass/tests/lab/real_guest_views.sh

release=$1 manager=$2
# A guest that has to share the processor answers late.
export AGENT_TIMEOUT=240
patience=900

set_up() { vfpass guest-setup train0 --timeout 900 "$@"; }

# write_mapping ENTRY...: rail0 and rail1, as many as are named.
write_mapping() {
    mapping train0 rail0 "$pf" 'index: 0' 'guest: {address: 192.168.100.10/24, mtu: 9000}'
    [ $# = 1 ] || cat >>"$vms/train0.yaml" <<YAML
  - {name: rail1, pf: {pci: "$pf"}, index: 1, guest: {address: "fd00:200::10/64", mtu: 4000}}
YAML
}

mac_of() { vport_value 0 "$1" mac; }

# Names that systemd gives come from the slot; the MAC tells which interface is meant.
netdev_in_guest() { guest_shell train0 "cd /sys/class/net && grep -l '^$(mac_of "$1")' */address | cut -d/ -f1"; }

# agrees INDEX ADDRESS MTU WHEN: what is set, by the kernel and by each tool that the guest has.
agrees() {
    local name
    name=$(netdev_in_guest "$1")
    expect "$4: VF $1 has $2, says ip" wait_until 240 kernel_has "$name" "$2" "$3"
    manager_agrees "$name" "$2" "$3" "$4: VF $1"
}

section "a guest with $release and $manager"
install_vfpass
load_standin
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
require "the guest's agent answers" wait_for_agent train0 $patience
took "the guest's start"
print_guest_versions train0 "$release" "$manager"
expect "the guest drives the VF" wait_until 240 guest_drives train0 1
name=$(netdev_in_guest 0)
expect "under a name of systemd's" test "${name#en}" != "$name"
guest_files >/tmp/files.found
guest_interface "$name" >/tmp/interface.found

section "set up"
expect_exit 3 "without --yes it only shows" set_up
expect_said "the file that the manager reads" "$(manager_file)"
guest_files >/tmp/files.now
expect_same_file "nothing was written" /tmp/files.found /tmp/files.now
expect "guest-setup --yes" set_up --yes
agrees 0 192.168.100.10/24 9000 "set up"
expect_contains "a second run" "nothing to do" set_up
took "it"

section "the guest reboots"
expect "through systemd, to its agent" reboot_real_guest train0 $patience
took "the reboot"
expect_equal "the interface has its name again" "$name" "$(netdev_in_guest 0)"
agrees 0 192.168.100.10/24 9000 "after the reboot"
expect_contains "vfpass has nothing to do" "nothing to do" set_up
took "all of it"

section "a second VF is plugged in"
write_mapping rail0 rail1
expect "attach" vfpass attach train0
expect "the guest drives both" reprobe_in_guest train0 2
expect "guest-setup --yes" set_up --yes
agrees 0 192.168.100.10/24 9000 "with two"
agrees 1 fd00:200::10/64 4000 "with two"
expect_contains "a second run" "nothing to do" set_up
second=$(netdev_in_guest 1)
took "it"

section "undo"
expect "undo" set_up --undo --yes
guest_files >/tmp/files.now
expect_same_file "every file is as it was found" /tmp/files.found /tmp/files.now
guest_interface "$name" >/tmp/interface.now
expect_same_file "the interface is as it was found" /tmp/interface.found /tmp/interface.now
for name in "$name" "$second"; do
    expect "$name has no address, says ip" kernel_has_none "$name"
    manager_forgot "$name"
done
expect_contains "a second undo" "nothing to do" set_up --undo
took "it"
finish
