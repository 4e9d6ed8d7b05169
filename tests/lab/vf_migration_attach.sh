# `migration: vfio` on the kernel's own drivers: attach makes a VF migratable by devlink, which takes switchdev mode, binds it to
# mlx5_vfio_pci and names that driver in the XML; a guest uses the VF, and detach restores all, also of a VF that had the driver or was
# migratable before. The second card's firmware cannot save VFs.
# covers: lab/connectx lab/machines/connectx-movable src/host/netlink/devlink.cpp src/host/drivers src/doctor/migration_check.cpp
# covers: src/plan/check_device.cpp lab/lib/connectx.sh
# shellcheck shell=bash disable=SC2154  # last_code is what expect leaves
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh

# finding KEY FIELD: of doctor's finding about the first PF.
finding() { jq -r --arg key "$1" --arg netdev "$netdev" ".findings[] | select(.key == \$key and .subject == \$netdev).$2" /tmp/doctor.json; }
examine() { vfpass doctor --json >/tmp/doctor.json || test $? = 1; }
mode_of() { devlink -j dev eswitch show "pci/$1" | jq -r '.dev[].mode'; }
# host_state FILE: what a detach has to restore. The driver gives a VF that has no MAC a new one each time that it is bound.
host_state() { { vf_states "$pf" && vf_states "$weak"; } >"$1"; }
inactive_xml() { virsh dumpxml --inactive --security-info g; }

section "a host with VFs, and a guest without one"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0) weak=$(pf_address 1) weak_netdev=$(pf_netdev 1)
make_vfs "$pf" 2
make_vfs "$weak" 1
for index in 0 1; do ip link set dev "$netdev" vf "$index" mac "02:aa:00:00:00:0$index"; done
ip link set dev "$weak_netdev" vf 0 mac 02:aa:00:00:01:00
ip link set dev "$netdev" up
start_libvirt
guest_xml g | permit_migration ua-vfpass-rail0 >/tmp/g.xml
expect "the guest is defined" virsh --quiet define /tmp/g.xml
settle g
expect "hook install" vfpass hook install
inactive_xml >/tmp/xml.before

section "legacy mode"
mapping g rail0 "$pf" 'index: 0' 'migration: vfio'
vf=$(vf_of "$pf" 0)
for command in attach check; do
    refuse "$command refuses it" vfpass "$command" g
    expect_said "it names the mode" "rail0 has \`migration: vfio\`, but PF $pf is in legacy mode, in which no VF can be made migratable"
    expect_said "it names the remedy" "embedded-switch-mode: switchdev"
done
expect "nothing is leased" no_lease
expect_equal "the VF has its driver" mlx5_core "$(driver_of "$vf")"
inactive_xml >/tmp/xml.after
expect_same_file "the XML is unchanged" /tmp/xml.before /tmp/xml.after
examine
expect_equal "doctor fails" failed "$(finding eswitch result)"
expect_contains "it names the mapping" "rail0 has \`migration: vfio\`" finding eswitch expected
took "the section"

section "switchdev mode"
switch_mode_policy "$pf" switchdev
expect "host apply" vfpass host apply
expect_equal "devlink reports the mode" switchdev "$(mode_of "$pf")"
expect "each VF has a representor" wait_until 30 representors_are "pf0vf0 pf0vf1"
# The mode change has made new VFs, without a driver.
for index in 0 1; do
    expect "the kernel binds VF $index" sh -c "echo $(vf_of "$pf" "$index") >/sys/bus/pci/drivers_probe"
    expect "it has a netdev" wait_until 60 has_netdev "$(vf_of "$pf" "$index")"
done
vf=$(vf_of "$pf" 0)
expect_equal "no VF is migratable at first" "disable disable" "$(migratable "$pf" 0) $(migratable "$pf" 1)"
examine
expect_equal "doctor has no objection to the mode" passed "$(finding eswitch result)"
expect_contains "it knows the driver" "mlx5_vfio_pci installed (Linux 7." finding vf-migration seen
expect_contains "it cannot see the firmware's setting" "VF_MIGRATION_MODE unknown" finding vf-migration seen
expect_equal "devlink tells that the firmware saves VFs" passed "$(finding vf-migration result)"
expect "the second PF's mode by hand" devlink dev eswitch set "pci/$weak" mode switchdev
expect "its VF has a representor" wait_until 30 representors_are "pf0vf0 pf0vf0 pf0vf1"
host_state /tmp/host.before
expect_exit 3 "plan" vfpass plan g
expect_said "it shows the driver" "mlx5_vfio_pci"
host_state /tmp/host.after
expect_same_file "the host is unchanged" /tmp/host.before /tmp/host.after
took "the section"

section "attach"
expect "attach" vfpass attach g
expect_equal "the VF is migratable" enable "$(migratable "$pf" 0)"
expect_equal "the other one is not" disable "$(migratable "$pf" 1)"
expect_equal "the VF is on mlx5_vfio_pci" mlx5_vfio_pci "$(driver_of "$vf")"
expect_contains "the XML names the driver" "<driver name='vfio' model='mlx5_vfio_pci'/>" inactive_xml
expect "plan has no changes" vfpass plan g
expect "status reports no drift" vfpass status g
inactive_xml >/tmp/xml.first
expect "a second attach succeeds" vfpass attach g
inactive_xml >/tmp/xml.second
expect_same_file "the XML is unchanged" /tmp/xml.first /tmp/xml.second
examine
expect_contains "doctor sees that the driver is loaded" "mlx5_vfio_pci loaded (Linux 7." finding vf-migration seen
took "the section"

section "a guest"
expect "the guest starts" virsh --quiet start g
qemu_has() { virsh qemu-monitor-command g --hmp info qtree | grep -F "host = \"$1\""; }
expect "QEMU has the VF" qemu_has "$vf"
expect_equal "QEMU has no reason against a migration" null \
    "$(virsh qemu-monitor-command g '{"execute": "query-migrate"}' | jq -c '.return["blocked-reasons"]')"
expect "its agent answers" wait_for_agent g 300
# The peer is the other VF.
for index in 0 1; do expect "the representor of VF $index is up" ip link set dev "$(representor_of "$pf" "$index")" up; done
expect "the peer is in a namespace" put_in_namespace "$pf" 1
name_vf 1
expect "the peer has an address" in_vf 1 "ip addr add 192.0.2.1/24 dev ${vf_netdev[1]}"
# shellcheck disable=SC2016  # for the guest's shell
expect "the guest has an address" guest_shell g 'd=$(ls /sys/class/net | grep -vx lo | head -n 1); ip addr add 192.0.2.2/24 dev $d && ip link set $d up'
ping_from_guest() { guest_shell g "ping -c 1 -W ${1:-5} 192.0.2.1"; }
refuse "without a rule on the host the guest does not reach the peer" ping_from_guest 2
expect "the representors are joined" join_representors "$pf" 0 1
expect "it reaches the peer" wait_until 60 ping_from_guest
expect "the guest is off" shut_down_guest g
expect "the lease is reserved" wait_until 120 has_lease reserved
expect_equal "the VF is still migratable" enable "$(migratable "$pf" 0)"
expect_equal "and on its driver" mlx5_vfio_pci "$(driver_of "$vf")"
ip netns del vf1
took "the section"

section "detach"
expect "detach" vfpass detach g
expect "no lease is left" no_lease
expect_equal "the VF is not migratable any more" disable "$(migratable "$pf" 0)"
expect "the peer's netdev is back" wait_until 30 has_netdev "$(vf_of "$pf" 1)"
host_state /tmp/host.after
expect_same_file "the host is restored" /tmp/host.before /tmp/host.after
inactive_xml >/tmp/xml.after
expect_same_file "the XML is restored, byte for byte" /tmp/xml.before /tmp/xml.after
took "the section"

unchanged() {
    expect "nothing is leased" no_lease
    host_state /tmp/host.after
    expect_same_file "the host is as before" /tmp/host.before /tmp/host.after
    inactive_xml >/tmp/xml.after
    expect_same_file "the XML is as before" /tmp/xml.before /tmp/xml.after
}

section "a firmware that refuses"
card 0 fault SET_HCA_CAP function=pf status=3 count=1
expect_exit 1 "attach fails" vfpass attach g
expect_said "it names the VF and the step" "PF $pf: making VF 0 migratable failed"
card 0 clear
unchanged
took "the section"

section "a VF that has the driver already"
# firmware VALUE: while the VF is unbound; the driver has initialized a VF that it is bound to, and the card refuses.
firmware() {
    local port
    port=$(devlink -j port show | jq -r --arg pf "pci/$pf/" '.port | to_entries[] | select((.key | startswith($pf)) and .value.vfnum == 0).key')
    devlink port function set "$port" migratable "$1"
}
refuse "the card refuses a VF in use" firmware enable
expect "it is bound by hand" bind_to "$vf" mlx5_vfio_pci
expect_equal "it is not migratable" disable "$(migratable "$pf" 0)"
host_state /tmp/bound.before
expect_exit 3 "plan" vfpass plan g
expect_said "it says why it is bound again" "it has this driver, but is not migratable"
expect "attach" vfpass attach g
expect_equal "the VF is migratable" enable "$(migratable "$pf" 0)"
expect_equal "the VF is on mlx5_vfio_pci" mlx5_vfio_pci "$(driver_of "$vf")"
expect "detach" vfpass detach g
expect_equal "the VF is not migratable any more" disable "$(migratable "$pf" 0)"
host_state /tmp/bound.after
expect_same_file "the host is restored" /tmp/bound.before /tmp/bound.after
echo "$vf" >/sys/bus/pci/drivers/mlx5_vfio_pci/unbind
expect "the unbound VF is made migratable by hand" firmware enable
expect "attach" vfpass attach g
expect "detach" vfpass detach g
expect_equal "the VF is still migratable" enable "$(migratable "$pf" 0)"
expect "it is taken back by hand" firmware disable
expect "the host's driver is bound" bind_to "$vf" mlx5_core
echo >"/sys/bus/pci/devices/$vf/driver_override"
expect "its netdev is back" wait_until 60 has_netdev "$vf"
unchanged
took "the section"

section "a firmware that cannot"
mapping g rail0 "$weak" 'index: 0' 'migration: vfio'
for command in check plan attach; do
    expect_exit 5 "$command refuses it" vfpass "$command" g
    expect_said "it names the PF and the cause" "rail0 has \`migration: vfio\`, but PF $weak cannot save the state of a VF: devlink shows no \`migratable\`"
    expect_said "it names the remedy" "vf-migration"
done
examine
weak_finding() { netdev=$weak_netdev finding vf-migration "$1"; }
expect_equal "this finding of doctor fails" failed "$(weak_finding result)"
expect_contains "it names the cause" "devlink has no \`migratable\`" weak_finding seen
unchanged
took "the section"

section "VFs that are made again"
echo "$vf" >/sys/bus/pci/drivers/mlx5_core/unbind
expect "an unbound VF is made migratable by hand" firmware enable
switch_mode_policy "$pf" switchdev
echo '    virtual-function-count: 3' >>/etc/vfpass/host.yaml
expect "host apply" vfpass host apply
expect_said "it says what it does with the VF" "make $vf migratable, without a driver"
expect_equal "the new VF is migratable, and no other" "enable disable disable" "$(migratable "$pf" 0) $(migratable "$pf" 1) $(migratable "$pf" 2)"
expect_equal "it has no driver" "" "$(driver_of "$vf")"
took "the section"

section "legacy mode again"
switch_mode_policy "$pf" legacy
expect "host apply" vfpass host apply
refuse "it asks for nothing that this mode lacks" grep -q migratable <<<"$last_output"
expect_equal "devlink reports the mode" legacy "$(mode_of "$pf")"
expect_equal "the kernel complains only of the fault and of the refused change" "bad parameter,bad resource state" \
    "$(complaints | sed 's/.*SET_HCA_CAP.* status \([a-z ]*\)(.*/\1/' | paste -sd,)"
expect_equal "the cards knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf?.log)"
finish
