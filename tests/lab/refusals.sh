# Invalid input and failures: one clear error, the right exit code, and no partial change.
# covers: src/commands src/config src/plan src/apply src/host
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0) other=$(pf_address 1)
make_vfs "$pf" 4
start_libvirt
define_guest train0
settle train0
define_guest train1
snapshot_host /tmp/host.before "$pf" "$other"
virsh dumpxml --inactive --security-info train0 >/tmp/xml.before

untouched() {
    snapshot_host /tmp/host.after "$pf" "$other"
    virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
    expect_same_file "the host is unchanged" /tmp/host.before /tmp/host.after
    expect_same_file "the XML is unchanged" /tmp/xml.before /tmp/xml.after
    expect "no lease is left" no_lease
}

# fails CODE TITLE TEXT COMMAND...: checks exit code and error message.
fails() {
    local code=$1 title=$2 text=$3
    shift 3
    expect_exit "$code" "$title" "$@"
    expect_said "$title: the error is printed" "$text"
}

section "configuration"
fails 2 "no mapping" "no mapping for VM train0" vfpass attach train0
mapping train0 rail0 "0000:7f:00.0"
fails 2 "unknown PF" "no PF pci 0000:7f:00.0" vfpass attach train0
mapping train0 rail0 "$pf" 'index: 8'
fails 2 "more VFs than the PF has" "has 4 VFs (at most 8)" vfpass attach train0
mapping train0 rail0 "$pf" 'vlan: {id: 4095}'
fails 2 "VLAN 4095" "4094" vfpass attach train0
expect_said "the error has the position in the mapping" "train0.yaml:6:"
mapping train0 rail0 "$pf" 'index: 1'
mapping train1 rail0 "$pf" 'index: 1'
fails 2 "two mappings, one VF" "train1.yaml" vfpass attach train0
mapping train0 rail0 "$pf" 'mac: 02:aa:00:00:00:11'
mapping train1 rail0 "$other" 'mac: 02:aa:00:00:00:11'
fails 2 "one MAC twice" "MAC address 02:aa:00:00:00:11 already belongs to rail0" vfpass attach train0
rm "$vms/train1.yaml"
mapping nobody rail0 "$pf"
fails 2 "a domain that does not exist" "no domain nobody" vfpass attach nobody
rm "$vms/nobody.yaml"
mapping train0 rail0 "$pf"
chmod 0666 "$vms/train0.yaml"
fails 2 "a mapping that anybody can write" "writable by everyone" vfpass attach train0
untouched

section "missing permission, missing libvirtd"
mapping train0 rail0 "$pf" 'index: 1'
fails 1 "an ordinary user" "root" setpriv --reuid 65534 --clear-groups vfpass attach train0
stop_libvirt
fails 1 "libvirtd is down" "libvirt" vfpass attach train0
start_libvirt
untouched

section "a VF in use on the host"
vf=$(vf_of "$pf" 1)
wait_until 60 test -d "/sys/bus/pci/devices/$vf/net"
vf_netdev=$(ls "/sys/bus/pci/devices/$vf/net")
ip link set dev "$vf_netdev" up
fails 5 "the VF's netdev is up" "$vf_netdev is up" vfpass attach train0
ip link set dev "$vf_netdev" down
define_with foreign "$vf"
fails 5 "another domain claims it" "claimed by domain foreign" vfpass attach train0
virsh undefine foreign >/dev/null
untouched

section "firmware that refuses the link state"
card 0 fault MODIFY_VPORT_STATE
mapping train0 rail0 "$pf" 'index: 1' 'vlan: {id: 5}' 'link-state: enable'
fails 1 "required: attribute and driver are named" "driver mlx5_core cannot set link-state of VF 1 to enable" \
    vfpass attach train0
untouched
mapping train0 rail0 "$pf" 'index: 1' 'vlan: {id: 5}' 'link-state: enable' 'required: [mac, vlan]'
expect "attach with an optional attribute" vfpass attach train0
expect_said "attach warns" "the driver refused the optional attribute link-state"
expect_contains "the VLAN is set" "vlan 5" vf_attributes "$netdev" 1
expect "detach" vfpass detach train0
card 0 clear
untouched

section "a slow probe"
mapping train0 rail0 "$pf" 'index: 1'
card 0 fault INIT_HCA function=vf1 late=3000
expect "attach" vfpass attach train0
expect "detach waits for the slow probe" vfpass detach train0
card 0 clear
untouched

section "a full disk in the state directory"
mkdir -p /tmp/small
mount -t tmpfs -o size=64k,mode=0700 tmpfs /tmp/small
dd if=/dev/zero of=/tmp/small/filler bs=1k 2>/dev/null
fails 1 "disk full" "/tmp/small" vfpass --state-dir /tmp/small attach train0
umount /tmp/small
untouched

section "damage of the state database beyond its first page"
state_file=/var/lib/vfpass/vfpass.db
overwrite_pages() {
    python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    size = file.seek(0, 2)
    file.seek(4096)
    file.write(b"\xaa" * (size - 4096))' "$state_file"
}
damage_record() {
    python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("INSERT INTO operations (kind, domain, domain_name, boot_id) VALUES (?, ?, ?, ?)",
                     ["attach", "0f5e9a3c-1111-4222-8333-944455566671", "other", "boot"])
    database.execute("INSERT INTO steps SELECT id, 0, ?, ?, ?, ?, 0 FROM operations", ["planned", "{", "[]", ""])' "$state_file"
}
expect "attach" vfpass attach train0
for damage in overwrite_pages damage_record; do
    expect "$damage" "$damage"
    # It does not read the journal.
    test "$damage" = damage_record || fails 1 "$damage: status" "run \`vfpass recover\`" vfpass status
    expect "$damage: recover" vfpass recover
    expect_said "$damage: it says where the file is" "moved to $state_file.corrupt-"
    expect "$damage: the lease is rebuilt" has_lease reserved
done
expect "detach" vfpass detach train0
untouched

section "an unbind that hangs: timeout, and the error names the device"
card 0 fault TEARDOWN_HCA function=vf1 never
fails 1 "unbind hangs" "$vf" vfpass attach train0
fails 5 "recover does not touch it before the kernel has returned" "still pending" vfpass recover
card 0 clear
expect "the late unbind takes effect" wait_until 30 eval "test -z \"\$(driver_of $vf)\""
expect "recover" vfpass recover
expect_equal "the VF's driver is restored" mlx5_core "$(driver_of "$vf")"
untouched
finish
