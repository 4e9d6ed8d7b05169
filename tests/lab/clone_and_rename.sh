# Domains that libvirt's own tools create, copy and rename: attach works with virt-install's XML, a copy by
# virt-clone has no lease, virt-xml's edits coexist with ours, and a renamed domain keeps its lease.
# covers: src/domain src/commands/status_command.cpp src/commands/drift.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
make_vfs "$pf" 4
start_libvirt
vfpass hook install

# virt-install without installing an operating system, as for an existing image.
install_xml() {
    virt-install --import --name "$1" --memory 32 --disk none --virt-type qemu --machine pc-q35-7.2 \
        --osinfo detect=off,require=off --network none --graphics none --noautoconsole --print-xml
}

section "a domain created by virt-install"
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
expect "virt-xml changes the memory size" virt-xml v --edit --memory memory=40,maxmemory=40
expect_contains "the XML has the new memory size" "40960" virsh dumpxml --inactive v
expect "no drift after virt-xml" vfpass status v
expect "v starts after virt-xml" start_paused v
expect "v's QEMU holds the VF after virt-xml" holds_vf v
stop_hard v
expect "virt-xml changes the memory size back" virt-xml v --edit --memory memory=32,maxmemory=32
expect "detach v" vfpass detach v
virsh dumpxml --inactive --security-info v >/tmp/v.after
expect_same_file "virt-install's XML is restored" /tmp/v.before /tmp/v.after
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
expect_said "status names the clone" "metadata refused: copy: "
expect_said "the remedy makes it a domain without VFs" "vfpass detach copy"
expect_exit 1 "the clone does not start" start_paused copy
expect_said "the reason is that it was copied" "the XML was copied"
expect_said "the remedy is vfpass attach" "vfpass attach"
expect "the original starts" start_paused a
expect_exit 1 "the clone does not start while the original runs" start_paused copy
expect "the original holds its VF" holds_vf a
expect_contains "the VF has the original's VLAN" "vlan 11" vf_attributes "$netdev" 1
expect_equal "the original's lease is running" running "$(lease_state a)"

section "a clone without a VF"
expect "detach removes the copied devices" vfpass detach copy
refuse "the clone's XML has no such devices" in_xml copy --inactive
expect "the clone starts" start_paused copy
expect_contains "the original's VF keeps its VLAN" "vlan 11" vf_attributes "$netdev" 1
expect "the original holds its VF" holds_vf a
expect "status reports no problem" vfpass status
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
expect "the clone holds a VF" holds_vf copy
expect_equal "two leases are running" 2 "$(leases | grep -c running)"
expect_equal "the leases have different VFs" 2 "$(leases | jq -r '.[2]' | sort -u | wc -l)"
expect_equal "the leases have different MACs" 2 "$(vfpass status --json | jq -r '.leases[].settings.mac' | sort -u | wc -l)"
stop_hard a
stop_hard copy
expect "detach the clone" vfpass detach copy
rm "$vms/copy.yaml"
virsh --quiet undefine copy

section "a clone with devices but without metadata"
expect "virt-clone" virt-clone --original a --name copy --auto-clone
virsh metadata copy --uri https://vfpass.org/xmlns/domain/1 --remove --config >/dev/null
expect_exit 1 "the clone does not start" start_paused copy
expect_said "the reason is the missing metadata" "no vfpass metadata"
expect_exit 3 "status" vfpass status
expect_said "status names the clone" "copy"
expect_said "the remedy is vfpass detach" "vfpass detach copy"
expect "detach the clone" vfpass detach copy
expect "the clone starts" start_paused copy
expect "status reports no problem" vfpass status
stop_hard copy
virsh --quiet undefine copy

section "a clone claims the VF of a detached domain"
expect "virt-clone" virt-clone --original a --name copy --auto-clone
expect "detach a" vfpass detach a
expect_exit 5 "attach a" vfpass attach a
expect_said "the error names the clone" "domain copy"
expect "detach the clone" vfpass detach copy
expect "attach a" vfpass attach a
virsh --quiet undefine copy

section "an attached domain is renamed"
expect "virsh domrename" virsh domrename a z
expect_exit 3 "status z" vfpass status z
expect_said "status shows the lease" rail0
expect_said "status reports the rename" "renamed"
expect_said "the remedy is printed" "vm: z"
expect_exit 2 "attach with the old name" vfpass attach a
expect_said "the error has the new name" "vm: z"
expect "the domain starts under its new name" start_paused z
expect "its QEMU holds the VF" holds_vf z
expect_contains "the VF has its VLAN" "vlan 11" vf_attributes "$netdev" 1
expect "gc keeps the lease" vfpass gc
expect_equal "the lease is running" running "$(lease_state z)"
stop_hard z
expect_equal "the lease is reserved" reserved "$(lease_state z)"
sed -i 's/^vm: a$/vm: z/' "$vms/a.yaml"
expect_contains "attach with the new name in the mapping changes nothing" "nothing to do" vfpass attach z
expect "no drift" vfpass status

section "another domain with the old name"
define_tiny a
cp "$vms/a.yaml" /tmp/z.yaml
sed 's/^vm: z$/vm: a/' /tmp/z.yaml >"$vms/a.yaml"
expect_exit 5 "the renamed domain's VF is refused" vfpass attach a
expect_said "the error names the renamed domain" "domain z"
expect_contains "detach finds nothing to detach" "nothing to do" vfpass detach a
expect_equal "z keeps its lease" reserved "$(lease_state z)"
virsh --quiet undefine a
cp /tmp/z.yaml "$vms/a.yaml"

section "detach after a rename"
expect "virsh domrename" virsh domrename z y
expect "detach with the old name finds the domain" vfpass detach z
refuse "its XML has no devices of ours" in_xml y --inactive
expect "no lease" no_lease
expect_equal "the VF's driver is restored" mlx5_core "$(driver_of "$(vf_of "$pf" 1)")"
finish
