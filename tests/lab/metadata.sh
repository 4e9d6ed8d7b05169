# Editing one domain's XML must not yield devices or settings or affect other VMs: vfpass acts only on metadata that
# this host has sealed, and a domain starts only if its metadata match the database.
# covers: src/domain src/state/seal_key_file.cpp src/plan/plan_hook.cpp src/hook
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

uri=https://vfpass.org/xmlns/domain/1
copy_uuid=99999999-8888-4777-8666-555544443333

# edit_xml VM SED_OPTION...: edits the XML as `virsh edit` does.
edit_xml() {
    local vm=$1
    shift
    virsh dumpxml --inactive --security-info "$vm" | sed "$@" >/tmp/edit.xml
    virsh --quiet define /tmp/edit.xml
}

# forge SED_OPTION...: copies a's metadata to x with changes.
forge() {
    sed "$@" /tmp/a.metadata >/tmp/forged.metadata
    virsh metadata x --uri "$uri" --key vfpass --set "$(cat /tmp/forged.metadata)" --config >/dev/null
}

# repeat TEXT COUNT
repeat() { printf "%$2s" '' | sed "s| |$1|g"; }

# set_foreign VM CONTENT OPTION [KEY]: writes the metadata of another program.
set_foreign() { virsh metadata "$1" --uri "urn:${4:-f}" --key "${4:-f}" --set "<x>$2</x>" "$3" >/dev/null; }

# nic_unaffected TITLE: the host's own NIC, PF 1, is unaffected.
nic_unaffected() {
    expect_equal "$1: the host keeps its NIC" "$nic_driver" "$(driver_of "$nic")"
    expect_equal "$1: the host keeps the NIC's netdev" "$nic_netdev" "$(netdev_of "$nic")"
    refuse "$1: x has no lease" grep -q '"x"' <(leases)
}

section "two domains, attached and sealed"
install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
nic=$(pf_address 1) nic_netdev=$(pf_netdev 1) nic_driver=$(driver_of "$(pf_address 1)")
ip link set dev "$nic_netdev" up
make_vfs "$pf" 4
start_libvirt
vfpass hook install
for vm in a b x; do
    define_guest "$vm"
    settle "$vm"
done
snapshot_host /tmp/host.before "$pf" "$nic"
virsh dumpxml --inactive --security-info a >/tmp/a.before
mapping a rail0 "$pf" 'index: 1' 'mac: 02:00:00:00:0a:01' 'vlan: {id: 11}' 'trust: false'
expect "attach a" vfpass attach a
expect_equal "only root can read the key" "600 root" "$(stat -c '%a %U' /etc/vfpass/seal.key)"
expect_contains "the metadata are sealed" 'seal="' virsh dumpxml --inactive a
restart_libvirt
expect_contains "the seal is valid after libvirt has formatted the XML" "nothing to do" vfpass attach a
virsh metadata a --uri "$uri" --config >/tmp/a.metadata

section "h: a start with edited VLAN and trust"
edit_xml a -e 's/"trust":false,"vlan":{"id":11,/"trust":true,"vlan":{"id":200,/'
expect_exit 1 "the start is refused" virsh start a
expect_said "the error names the changed attributes" "rail0 differs from the attached lease: vlan, trust"
expect_said "the remedy is printed" "vfpass attach a"
refuse "the VF does not have the edited VLAN" grep -q "vlan 200" <(vf_attributes "$netdev" 1)
expect_exit 3 "status" vfpass status a
expect_said "status reports the cause" "wrong seal"
expect "attach repairs the metadata" vfpass attach a
expect "a starts" virsh start a
expect_contains "the VF has its own VLAN" "vlan 11" vf_attributes "$netdev" 1
expect "destroy a" virsh destroy a
expect "status" vfpass status a

section "a start without the metadata"
edit_xml a '/<metadata>/,/<\/metadata>/d'
expect_exit 1 "the start is refused" virsh start a
expect_said "the reason is printed" "no vfpass metadata"
expect "attach repairs the metadata" vfpass attach a
expect_contains "the metadata are restored" 'seal="' virsh dumpxml --inactive a

section "a stop cleans the VF, whatever the running domain's metadata is"
# As deep as libxml2 parses it, with the element of libvirt's key.
deep=$(repeat '<d>' 250)$(repeat '</d>' 250)
for state in deep removed; do
    expect "a starts" virsh start a
    expect_contains "the VF has its VLAN ($state)" "vlan 11" vf_attributes "$netdev" 1
    if [[ $state == deep ]]; then
        expect "deep metadata" set_foreign a "$deep" --live
    fi
    expect "vfpass's metadata are removed ($state)" virsh metadata a --uri "$uri" --remove --live
    expect "destroy a" virsh destroy a
    refuse "the VF has no VLAN ($state)" grep -q "vlan 11" <(vf_attributes "$netdev" 1)
done
expect "deep metadata in the configuration" set_foreign a "$deep" --config
expect "status" vfpass status a
expect "a starts" virsh start a
expect "destroy a" virsh destroy a
expect "the deep metadata are removed" virsh metadata a --uri urn:f --remove --config

section "a domain that libvirt cannot send affects only itself"
mapping x rail0 "$pf" 'index: 3' 'mac: 02:00:00:00:0c:01'
expect "attach x" vfpass attach x
# libvirt indents each <e/> by 60 spaces: 350 KB, more than an argument may have, become 5 MB.
printf '%s' "<f:x xmlns:f='urn:f'>" "$(repeat '<d>' 40)" "$(repeat '<e/>' 80000)" "$(repeat '</d>' 40)" '</f:x>' >/tmp/large.metadata
expect "large metadata" edit_xml x '/<\/metadata>/e cat /tmp/large.metadata'
expect_exit 1 "libvirt cannot send the XML of x" virsh dumpxml --inactive x
mapping b rail0 "$pf" 'index: 2' 'mac: 02:00:00:00:0b:01'
expect_exit 3 "plan b" vfpass plan b
expect "attach b" vfpass attach b
expect_said "x is named" "domain x: its devices are unknown: "
expect "gc" vfpass gc
expect "x keeps its lease" has_lease x
expect "recover" vfpass recover
expect_exit 3 "status" vfpass status
expect_said "status has the reason" "too large for libvirt to send"
expect_said "status has the remedy" 'virsh metadata x --uri URI --remove --config'
expect_exit 1 "attach x" vfpass attach x
expect_said "attach has the reason" "cannot read the XML of domain 'x': too large for libvirt to send"
capture vfpass doctor --vm x
expect_said "doctor has the reason" "too large for libvirt to send"
expect_said "doctor checks the devices of the mapping" " passed, "
expect "the remedy works" virsh metadata x --uri urn:f --remove --config
expect "status" vfpass status
expect "detach x" vfpass detach x
expect "detach b" vfpass detach b

section "a running domain that libvirt cannot send"
mapping x rail0 "$pf" 'index: 3' 'mac: 02:00:00:00:0c:01' 'vlan: {id: 12}'
expect "attach x" vfpass attach x
expect "x starts" virsh start x
for key in f g h; do
    expect "large metadata ($key)" \
        set_foreign x "$(repeat '<d>' 40)$(repeat '<e/>' 28000)$(repeat '</d>' 40)" --live "$key"
done
expect_exit 1 "libvirt cannot send the XML of the running x" virsh dumpxml x
expect "gc" vfpass gc
expect "recover" vfpass recover
expect "x keeps its lease" has_lease x
expect_contains "the VF keeps its VLAN" "vlan 12" vf_attributes "$netdev" 3
expect_exit 3 "status" vfpass status
expect_said "status has the remedy" 'virsh metadata x --uri URI --remove --live'
mapping b rail0 "$pf" 'index: 3' 'mac: 02:00:00:00:0b:01'
mv "$vms/x.yaml" /tmp/x.yaml
expect_exit 5 "b does not get the VF of x" vfpass attach b
mv /tmp/x.yaml "$vms/x.yaml"
mapping b rail0 "$pf" 'index: 2' 'mac: 02:00:00:00:0b:01'
expect "attach b" vfpass attach b
expect "destroy x" virsh destroy x
refuse "the VF has no VLAN" grep -q "vlan 12" <(vf_attributes "$netdev" 3)
expect "status" vfpass status
expect "detach x" vfpass detach x
expect "detach b" vfpass detach b
rm -f "$vms/x.yaml" "$vms/b.yaml"

section "i: a copy with a higher generation does not affect other domains"
virsh dumpxml --inactive --security-info a | sed -e 's|<name>a</name>|<name>copy</name>|' \
    -e "s|<uuid>.*</uuid>|<uuid>$copy_uuid</uuid>|" \
    -e "/:domain /s|uuid=\"[^\"]*\"|uuid=\"$copy_uuid\"|" \
    -e 's/"generation":[0-9]*/"generation":4000000000/' >/tmp/copy.xml
expect "define the copy" virsh define /tmp/copy.xml
mapping b rail0 "$pf" 'index: 2' 'mac: 02:00:00:00:0b:01'
expect "attach b" vfpass attach b
# shellcheck disable=SC2154  # of lab/lib.sh
refuse "the copy is not mentioned" grep -q copy <<<"$last_output"
expect_exit 3 "status" vfpass status
expect_said "status names the copy" "metadata refused: copy: "
expect_said "status prints the remedy" "vfpass detach copy"
expect_exit 3 "status --json" vfpass status --json
expect_equal "the JSON lists the copy once" '["copy"]' \
    "$(jq -c '[.refused_metadata[].domain.name]' <<<"$last_output")"
expect_exit 1 "the copy does not start" virsh start copy
expect "the remedy works" vfpass detach copy
expect "status reports no problem for the copy" vfpass status copy
virsh --quiet undefine copy

section "f: a forged lease of the host's NIC is not adopted"
function_of() {
    printf '%s\n' -e 's/"kind":"vf"/"kind":"function"/' -e "s/\"pf\":\"[^\"]*\"/\"pf\":\"$1\"/" \
        -e "s/\"vf\":\"[^\"]*\"/\"vf\":\"$1\"/" -e 's/"persistent":true/"persistent":false/' \
        -e 's/"generation":[0-9]*/"generation":4000000000/' \
        -e "s/uuid=\"[^\"]*\"/uuid=\"$(virsh domuuid x | head -n 1)\"/"
}
mapfile -t as_function < <(function_of "$nic")
expect "forge" forge "${as_function[@]}"
expect "gc" vfpass gc
expect "recover" vfpass recover
nic_unaffected "after gc"
rm -rf /tmp/state.kept
cp -a /var/lib/vfpass /tmp/state.kept
rm -rf /var/lib/vfpass
expect "gc without the database" vfpass gc
nic_unaffected "after the loss of the database"
expect_exit 1 "x does not start" virsh start x
nic_unaffected "after the start"
rm -rf /var/lib/vfpass
mv /tmp/state.kept /var/lib/vfpass

section "g: a path as driver name"
mkdir -p /tmp/target
touch /tmp/target/bind /tmp/target/unbind
expect "forge" forge "${as_function[@]}" \
    -e 's|"driver":"[^"]*"|"driver":"../../../../../../tmp/target"|'
expect "gc" vfpass gc
expect_exit 1 "x does not start" virsh start x
expect_exit 3 "status" vfpass status
expect_said "status names the attribute" "member 'driver'"
expect "attach of b still works" vfpass attach b
expect "detach x" vfpass detach x
expect "nothing was written to that path" test ! -s /tmp/target/bind -a ! -s /tmp/target/unbind
nic_unaffected "after the path"

section "another host's metadata are not rebuilt"
rm -rf /var/lib/vfpass
machine_id=$(cat /etc/machine-id)
echo 00112233445566778899aabbccddeeff >/etc/machine-id
expect_exit 1 "b does not start" virsh start b
expect_said "the reason is printed" "wrong seal"
expect "recover" vfpass recover
expect "no lease" no_lease
echo "$machine_id" >/etc/machine-id

section "d: a start of b does not prevent rebuilding a's lease"
rm -rf /var/lib/vfpass
expect "start b" virsh start b
expect "b's lease is rebuilt" has_lease b
refuse "a's lease is not rebuilt yet" has_lease a
expect "recover" vfpass recover
expect "a's lease is rebuilt" has_lease a
expect "destroy b" virsh destroy b
expect "detach b" vfpass detach b
expect "detach a" vfpass detach a
expect_equal "the driver of a's VF is restored" mlx5_core "$(driver_of "$(vf_of "$pf" 1)")"
snapshot_host /tmp/host.after "$pf" "$nic"
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after
virsh dumpxml --inactive --security-info a >/tmp/a.after
expect_same_file "a's XML is restored" /tmp/a.before /tmp/a.after

section "a lease that has ended is not rebuilt"
expect "the old metadata are written back" virsh metadata a --uri "$uri" --key vfpass --set "$(cat /tmp/a.metadata)" --config
expect "recover" vfpass recover
expect "no lease" no_lease
expect_exit 3 "status" vfpass status a
expect_said "status prints the reason" "it has ended"
finish
