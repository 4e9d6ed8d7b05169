# Domains made, copied and renamed by libvirt's own tools: virt-install's XML is attached like any other, a copy
# by virt-clone is nobody's lease, virt-xml edits beside ours, and a renamed domain keeps its lease.
# covers: src/domain src/cli/status.cpp src/cli/drift.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

install_vfpass
load_standin
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
start_libvirt
vfpass hook install

# virt-install without an operating system, as for an image that is there already.
install_xml() {
    virt-install --import --name "$1" --memory 32 --disk none --virt-type qemu --machine pc-q35-7.2 \
        --osinfo detect=off,require=off --network none --graphics none --noautoconsole --print-xml
}

section "a domain of virt-install"
expect "virt-install prints the XML" install_xml v
install_xml v >/tmp/v.xml
expect "define it" virsh define /tmp/v.xml
settle v
virsh dumpxml --inactive --security-info v >/tmp/v.before
mapping v rail0 "$pf" 'index: 0' 'vlan: {id: 10}'
expect "attach v" vfpass attach v
expect "v starts" start_paused v
expect "v's QEMU holds the VF" holds_vf v
expect "no drift" vfpass status v
stop_hard v
expect "virt-xml changes another device" virt-xml v --edit --memory memory=40,maxmemory=40
expect_contains "the change is there" "40960" virsh dumpxml --inactive v
expect "no drift after virt-xml" vfpass status v
expect "v starts after virt-xml" start_paused v
expect "v's QEMU holds the VF after virt-xml" holds_vf v
stop_hard v
expect "virt-xml changes it back" virt-xml v --edit --memory memory=32,maxmemory=32
expect "detach v" vfpass detach v
virsh dumpxml --inactive --security-info v >/tmp/v.after
expect_same_file "virt-install's XML is as before" /tmp/v.before /tmp/v.after
rm "$vms/v.yaml"

section "virt-clone of an attached domain"
define_tiny a
mapping a rail0 "$pf" 'index: 1' 'vlan: {id: 11}'
expect "attach a" vfpass attach a
virsh dumpxml --inactive a >/tmp/a.attached
expect "virt-clone" virt-clone --original a --name copy --auto-clone
virsh dumpxml --inactive a >/tmp/a.after
expect_same_file "the original is unchanged" /tmp/a.attached /tmp/a.after
expect "the clone has the original's device in its XML" in_xml copy --inactive
expect "no drift of the original" vfpass status a
expect_exit 3 "status" vfpass status
expect_said "names the clone" "metadata refused: copy: "
expect_said "and how to make it a domain without VFs" "vfpass detach copy"
expect_exit 1 "the clone does not start" start_paused copy
expect_said "because it was copied" "the XML was copied"
expect_said "with what to do" "vfpass attach"
expect "the original starts" start_paused a
expect_exit 1 "the clone does not start beside it" start_paused copy
expect "the original holds its VF" holds_vf a
expect_contains "with its VLAN" "vlan 11" vf_attributes "$netdev" 1
expect_equal "its lease runs" running "$(lease_state a)"

section "a clone that is to have no VF"
expect "detach takes the copied devices out" vfpass detach copy
refuse "they are gone" in_xml copy --inactive
expect "the clone starts" start_paused copy
expect_contains "the original has its VLAN" "vlan 11" vf_attributes "$netdev" 1
expect "the original holds its VF" holds_vf a
expect "status has nothing to say" vfpass status
stop_hard copy
virsh --quiet undefine copy
stop_hard a

section "a clone with a VF of its own"
expect "virt-clone" virt-clone --original a --name copy --auto-clone
mapping copy rail0 "$pf" 'vlan: {id: 12}'
expect "attach the clone" vfpass attach copy
expect "no drift" vfpass status
expect "the original starts" start_paused a
expect "the clone starts" start_paused copy
expect "the original holds its VF" holds_vf a
expect "the clone holds one" holds_vf copy
expect_equal "two leases run" 2 "$(leases | grep -c running)"
expect_equal "of two VFs" 2 "$(leases | jq -r '.[2]' | sort -u | wc -l)"
expect_equal "with two MACs" 2 "$(vfpass status --json | jq -r '.leases[].settings.mac' | sort -u | wc -l)"
stop_hard a
stop_hard copy
expect "detach the clone" vfpass detach copy
rm "$vms/copy.yaml"
virsh --quiet undefine copy

section "a clone whose metadata alone were removed"
expect "virt-clone" virt-clone --original a --name copy --auto-clone
virsh metadata copy --uri https://vfpass.org/xmlns/domain/1 --remove --config >/dev/null
expect_exit 1 "it does not start" start_paused copy
expect_said "the reason is given" "no vfpass metadata"
expect_exit 3 "status" vfpass status
expect_said "names it" "copy"
expect_said "and what to do" "vfpass detach copy"
expect "detach it" vfpass detach copy
expect "it starts" start_paused copy
expect "status has nothing to say" vfpass status
stop_hard copy
virsh --quiet undefine copy

section "a clone claims the VF of a domain that was detached"
expect "virt-clone" virt-clone --original a --name copy --auto-clone
expect "detach a" vfpass detach a
expect_exit 5 "attach a" vfpass attach a
expect_said "names the clone" "domain copy"
expect "detach the clone" vfpass detach copy
expect "attach a" vfpass attach a
virsh --quiet undefine copy

section "an attached domain is renamed"
expect "virsh domrename" virsh domrename a z
expect_exit 3 "status z" vfpass status z
expect_said "has the lease" rail0
expect_said "says what happened" "renamed"
expect_said "and what to do" "vm: z"
expect_exit 2 "attach by the old name" vfpass attach a
expect_said "says the new one" "vm: z"
expect "it starts under its new name" start_paused z
expect "its QEMU holds the VF" holds_vf z
expect_contains "with its VLAN" "vlan 11" vf_attributes "$netdev" 1
expect "gc leaves it alone" vfpass gc
expect_equal "the lease runs" running "$(lease_state z)"
stop_hard z
expect_equal "the lease is reserved" reserved "$(lease_state z)"
sed -i 's/^vm: a$/vm: z/' "$vms/a.yaml"
expect_contains "with the new name in the mapping nothing is to be done" "nothing to do" vfpass attach z
expect "no drift" vfpass status

section "another domain gets the old name"
define_tiny a
cp "$vms/a.yaml" /tmp/z.yaml
sed 's/^vm: z$/vm: a/' /tmp/z.yaml >"$vms/a.yaml"
expect_exit 5 "it does not get the VF of the renamed one" vfpass attach a
expect_said "which is named" "domain z"
expect_contains "nothing of it is detached" "nothing to do" vfpass detach a
expect_equal "z has its lease" reserved "$(lease_state z)"
virsh --quiet undefine a
cp /tmp/z.yaml "$vms/a.yaml"

section "detach after a rename"
expect "virsh domrename" virsh domrename z y
expect "detach by the old name finds it" vfpass detach z
refuse "its XML has nothing of ours" in_xml y --inactive
expect "no lease" no_lease
expect_equal "the VF is back on its driver" mlx5_core "$(driver_of "$(vf_of "$pf" 1)")"
finish
