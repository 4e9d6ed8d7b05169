# vfpass guest-setup for real: a guest with two VFs, set up through its agent, looked at from inside, changed
# with its mapping, and brought back byte for byte.
# covers: src/guest/*setup* src/guest/network_files.* src/guest/nccl_conf.* src/cli/guest_setup.cpp src/cli/setup_wish.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

# A guest that has to share its processor answers late.
export AGENT_TIMEOUT=240

set_up() { vfpass guest-setup train0 --timeout 600 "$@"; }

# write_mapping ADDRESS TIMEOUT MTU
write_mapping() {
    mapping train0 rail0 "$pf" 'index: 0' "guest: {address: $1, mtu: $3}"
    cat >>"$vms/train0.yaml" <<YAML
  - name: rail1
    pf: {pci: "$pf"}
    index: 1
    guest: {address: 192.168.200.10/24, mtu: 9000}
nccl: {gid-index: 3, traffic-class: 41, service-level: 0, qps: 16, timeout: $2}
YAML
}

# guest_state: every file with its mode, and everything that is set on the interfaces.
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

section "a guest with two VFs and a file of its own"
install_vfpass
load_standin
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
start_libvirt
define_guest train0
write_mapping 192.168.100.10/24 22 9000
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
expect_exit 6 "a VM that does not run is not set up" vfpass guest-setup train0
expect "virsh start" virsh start train0
expect "the guest's agent answers" wait_for_agent train0 400
guest_shell train0 'printf "NCCL_DEBUG=INFO\nNCCL_IB_TC=106" >/etc/nccl.conf; chmod 640 /etc/nccl.conf'
guest_state >/tmp/found
took "the guest's start"

section "shown, and not done"
expect_exit 3 "without --yes it only shows" set_up
expect_said "a file that it makes" "+++ /etc/sysctl.d/90-vfpass.conf"
expect_said "a file that it changes" "--- /etc/nccl.conf"
expect_said "its new lines" "+NCCL_IB_QPS_PER_CONNECTION=16"
expect_said "the guest's own stay" " NCCL_DEBUG=INFO"
expect_said "what counts no more" "\`NCCL_IB_TC=106\` does not count any more"
expect_said "addresses" "address +192.168.100.10/24"
expect_said "ARP settings" "arp_announce 0 -> 1, arp_ignore 0 -> 2"
expect_said "that they do not outlast a boot" "do not outlast the guest's next boot"
expect_said "why there is no topology file" "the VM has no GPU"
expect_exit 3 "--dry-run --json" set_up --dry-run --json
# shellcheck disable=SC2154  # last_output is what lib.sh's checks leave
expect_equal "its JSON says the same" 'false /etc/nccl.conf /etc/sysctl.d/90-vfpass.conf rail0 rail1' "$(
    jq -r '[.applied, ([.files[].path] | sort[]), .interfaces[].entry] | join(" ")' <<<"$last_output")"
guest_state >/tmp/now
expect_same_file "the guest is as it was" /tmp/found /tmp/now
took "it"

section "set up"
expect "guest-setup --yes" set_up --yes
# shellcheck disable=SC2016
seen=$(guest_shell train0 'for netdev in /sys/class/net/*; do
    [ -e $netdev/device ] || continue; name=${netdev##*/}; conf=/proc/sys/net/ipv4/conf/$name
    echo "$(ip -o address show dev $name | sed -n "s/.*inet \([^ ]*\).*/\1/p") $(cat $netdev/mtu) $(
        cat $conf/arp_announce) $(cat $conf/arp_ignore) $(cat $netdev/address)"; done | sort')
expect_equal "addresses, MTU and ARP settings are on the right ports" \
    "192.168.100.10/24 9000 1 2 $(vport_value 0 0 mac)
192.168.200.10/24 9000 1 2 $(vport_value 0 1 mac)" "$seen"
expect_contains "NCCL's file" "NCCL_IB_TIMEOUT=22" guest_shell train0 'cat /etc/nccl.conf'
expect_equal "its mode is kept" 640 "$(guest_shell train0 'stat -c %a /etc/nccl.conf')"
expect_contains "sysctl.d" "arp_ignore = 2" guest_shell train0 'cat /etc/sysctl.d/90-vfpass.conf'
expect_contains "a second run" "nothing to do" set_up
expect_equal "a file that was half written is not left" "" \
    "$(guest_shell train0 'find / -xdev -name "*.vfpass-new"')"
took "it"

section "an edited mapping"
write_mapping 192.168.100.11/24 20 4000
expect_exit 3 "is pending" set_up
expect_said "as a change" "address -192.168.100.10/24, address +192.168.100.11/24"
expect_said "also in the file" "-NCCL_IB_TIMEOUT=22"
expect "set up again" set_up --yes
expect_contains "the new address is there" 192.168.100.11/24 guest_shell train0 'ip address'
expect_equal "the old one is not" "" "$(guest_shell train0 'ip address | grep 100.10/')"
guest_state >/tmp/second
write_mapping 192.168.100.12/24 21 20000
expect_exit 1 "an MTU that the VF does not take" set_up --yes
expect_said "is told" "the guest cannot set up"
expect_said "and taken back" "the guest is as it was"
guest_state >/tmp/now
expect_same_file "down to the byte" /tmp/second /tmp/now
took "it"

section "undo"
rm "$vms/train0.yaml"
expect_exit 2 "without a mapping there is nothing to set up" set_up
expect_exit 3 "but to undo" set_up --undo
expect_said "which it shows first" "+++ /dev/null"
expect "undo" set_up --undo --yes
guest_state >/tmp/now
expect_same_file "the guest is as it was found" /tmp/found /tmp/now
expect_contains "a second undo" "nothing to do" set_up --undo
took "it"

section "an agent that takes no files"
write_mapping 192.168.100.10/24 22 9000
guest_shell train0 'mkdir -p /etc/qemu
    printf "[general]\nblock-rpcs=guest-file-open\nblacklist=guest-file-open\n" >/etc/qemu/qemu-ga.conf
    killall qemu-ga' >/dev/null 2>&1
expect "the agent is back" wait_until 120 agent_answers train0
guest_state >/tmp/found
expect_exit 6 "is told" set_up --yes
expect_said "with the command" "does not allow guest-file-open"
expect_said "and what to do" "allow guest-file-open in the guest"
guest_state >/tmp/now
expect_same_file "nothing was changed" /tmp/found /tmp/now
finish
