# vfpass guest-setup of a guest with two VFs: set up through its agent, checked from inside, changed with its mapping,
# and restored byte for byte.
# covers: src/guest/setup src/guest/setup/guest_files.* src/commands/guest_setup_command.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

# A guest that shares its processor responds slowly.
export AGENT_TIMEOUT=240

set_up() { vfpass guest-setup train0 --timeout 600 "$@"; }

# write_mapping ADDRESS TIMEOUT MTU
write_mapping() {
    mapping train0 rail0 "$pf" 'index: 0' "guest: {address: $1, mtu: $3}"
    cat >>"$vms/train0.yaml" <<YAML
  - name: rail1
    pf: {pci: "$pf"}
    index: 1
    guest: {address: 192.168.200.10/24, mtu: 9000, name: fast1}
nccl: {gid-index: 3, traffic-class: 41, service-level: 0, qps: 16, timeout: $2, environment: {NCCL_CROSS_NIC: 0}}
YAML
}

# guest_state: every file with its mode and checksum, and all settings of the interfaces.
# shellcheck disable=SC2016  # the guest's shell expands it
guest_state() {
    guest_shell train0 'find /etc /var/lib/vfpass* 2>/dev/null | sort | while read -r path; do
            stat -c "%n %F %a %u %g" "$path"; [ -d "$path" ] || md5sum <"$path"; done
        ip -o address show | sed "s/ valid_lft.*//"
        for netdev in /sys/class/net/*; do
            echo "${netdev##*/} $(cat "$netdev/mtu" "$netdev/flags" \
                /proc/sys/net/ipv4/conf/${netdev##*/}/arp_announce \
                /proc/sys/net/ipv4/conf/${netdev##*/}/arp_ignore | tr "\n" " ")"
        done'
}

section "a guest with two VFs and its own /etc/nccl.conf"
install_vfpass
load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
start_libvirt
define_guest train0
write_mapping 192.168.100.10/24 22 9000
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
expect_exit 6 "guest-setup refuses a VM that is not running" vfpass guest-setup train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 400
guest_shell train0 'printf "NCCL_DEBUG=INFO\nNCCL_IB_TC=106" >/etc/nccl.conf; chmod 640 /etc/nccl.conf'
guest_state >/tmp/found
took "the guest's start"

section "dry run"
expect_exit 3 "guest-setup without --yes" set_up
expect_said "the diff has a new file" "+++ /etc/sysctl.d/90-vfpass.conf"
expect_said "the diff has a changed file" "--- /etc/nccl.conf"
expect_said "the diff has new lines" "+NCCL_IB_QPS_PER_CONNECTION=16"
expect_said "the diff keeps the guest's own lines" " NCCL_DEBUG=INFO"
expect_said "overridden lines are reported" "\`NCCL_IB_TC=106\` no longer takes effect"
expect_said "addresses are shown" "address +192.168.100.10/24"
expect_said "ARP settings are shown" "arp_announce 0 -> 2, arp_ignore 0 -> 1"
expect_said "the output says that they are lost at the next boot" "are lost at its next boot"
expect_said "the output says that a guest without systemd keeps its names" "so the interface keeps the name"
expect_said "the output says why there is no topology file" "the VM has no GPU"
expect_exit 3 "--dry-run --json" set_up --dry-run --json
# shellcheck disable=SC2154  # last_output is what lib.sh's checks leave
expect_equal "the JSON has the same changes" 'false /etc/nccl.conf /etc/sysctl.d/90-vfpass.conf rail0 rail1' "$(
    jq -r '[.applied, ([.files[].path] | sort[]), .interfaces[].entry] | join(" ")' <<<"$last_output")"
guest_state >/tmp/now
expect_same_file "the guest is unchanged" /tmp/found /tmp/now
took "the section"

section "guest-setup --yes"
expect "guest-setup --yes" set_up --yes
# shellcheck disable=SC2016
seen=$(guest_shell train0 'for netdev in /sys/class/net/*; do
    [ -e $netdev/device ] || continue; name=${netdev##*/}; conf=/proc/sys/net/ipv4/conf/$name
    echo "$(ip -o address show dev $name | sed -n "s/.*inet \([^ ]*\).*/\1/p") $(cat $netdev/mtu) $(
        cat $conf/arp_announce) $(cat $conf/arp_ignore) $(cat $netdev/address)"; done | sort')
expect_equal "addresses, MTU and ARP settings are on the right ports" \
    "192.168.100.10/24 9000 2 1 $(vf_attribute 0 0 address)
192.168.200.10/24 9000 2 1 $(vf_attribute 0 1 address)" "$seen"
expect_contains "NCCL's settings are written" "NCCL_IB_TIMEOUT=22" guest_shell train0 'cat /etc/nccl.conf'
expect_contains "variables of NCCL without a key are written" "NCCL_CROSS_NIC=0" guest_shell train0 'cat /etc/nccl.conf'
expect_equal "the file's mode is kept" 640 "$(guest_shell train0 'stat -c %a /etc/nccl.conf')"
expect_contains "the sysctl file is written" "arp_ignore = 1" guest_shell train0 'cat /etc/sysctl.d/90-vfpass.conf'
expect_contains "a second run changes nothing" "nothing to do" set_up
expect_equal "no temporary file is left" "" \
    "$(guest_shell train0 'find / -xdev -name "*.vfpass-new"')"
took "the section"

section "a changed mapping"
write_mapping 192.168.100.11/24 20 4000
expect_exit 3 "a change is pending" set_up
expect_said "the address change is shown" "address -192.168.100.10/24, address +192.168.100.11/24"
expect_said "the change of NCCL's file is shown" "-NCCL_IB_TIMEOUT=22"
expect "guest-setup applies the change" set_up --yes
expect_contains "the new address is set" 192.168.100.11/24 guest_shell train0 'ip address'
expect_equal "the old address is removed" "" "$(guest_shell train0 'ip address | grep 100.10/')"
guest_state >/tmp/second
write_mapping 192.168.100.12/24 21 20000
expect_exit 1 "an MTU that the VF rejects" set_up --yes
expect_said "the error is printed" "cannot set up"
expect_said "the changes are rolled back" "changes in the guest rolled back"
guest_state >/tmp/now
expect_same_file "the guest is unchanged, byte for byte" /tmp/second /tmp/now
took "the section"

section "undo"
rm "$vms/train0.yaml"
expect_exit 2 "guest-setup without a mapping" set_up
expect_exit 3 "guest-setup --undo without a mapping" set_up --undo
expect_said "the diff removes a file" "+++ /dev/null"
expect "undo" set_up --undo --yes
guest_state >/tmp/now
expect_same_file "the guest is restored" /tmp/found /tmp/now
expect_contains "a second undo changes nothing" "nothing to do" set_up --undo
took "the section"

section "an agent that blocks files"
write_mapping 192.168.100.10/24 22 9000
guest_shell train0 'mkdir -p /etc/qemu
    printf "[general]\nblock-rpcs=guest-file-open\nblacklist=guest-file-open\n" >/etc/qemu/qemu-ga.conf
    killall qemu-ga' >/dev/null 2>&1
expect "the agent answers again" wait_until 120 agent_answers train0
guest_state >/tmp/found
expect_exit 6 "the error is printed" set_up --yes
expect_said "the error names the command" "does not allow guest-file-open"
expect_said "the remedy is printed" "allow guest-file-open in the guest"
guest_state >/tmp/now
expect_same_file "the guest is unchanged" /tmp/found /tmp/now
finish
