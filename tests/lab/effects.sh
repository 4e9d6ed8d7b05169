# What the settings of a VF do to its guest's frames, and what a guest can do to others, on the model of a ConnectX: the table in
# docs/security.md. Root of the guest "attacker" has VF 0, which vfpass configures while it runs. VF 1, the victim, and VF 2,
# the witness, are in network namespaces of the host.
# covers: lab/connectx lab/lib/connectx.sh src/host/sriov src/plan/lease_changes.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh

export AGENT_TIMEOUT=120
stranger=02:00:00:00:0b:0b group=01:00:5e:00:00:63

# give LINE...: attaches VF 0 to the attacker with these lines.
give() {
    mapping attacker rail0 "$pf" 'index: 0' 'mac: 02:00:00:00:0a:00' "$@"
    echo 'allow: [trust]' >>"$vms/attacker.yaml"
    expect "attach with $*" vfpass attach attacker
}

# others VLAN: moves the victim and the witness.
others() { ip link set dev "$netdev" vf 1 vlan "$1" && ip link set dev "$netdev" vf 2 vlan "$1"; }

# reaches TITLE [ARGUMENTS of delivered...], reaches_not: the attacker's frames arrive at the victim or do not.
reaches() {
    local title=$1
    shift
    expect_equal "$title" "${1:-${vf_mac[0]}}" "$(delivered "$@")"
}
reaches_not() {
    local title=$1
    shift
    expect_equal "$title" "" "$(delivered "$@")"
}

# overhears DESTINATION [MAC]: prints the victim's MAC if the attacker, which now has MAC, receives what the victim sends to
# DESTINATION.
overhears() {
    local own=${vf_mac[0]}
    vf_mac[0]=${2:-$own}
    sender=1 receiver=0 delivered "${vf_mac[1]}" "$1"
    vf_mac[0]=$own
}

set_own_mac() { guest_shell attacker "ip link set dev ${vf_netdev[0]} address $1"; }

section "a guest and two VFs in namespaces"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
ip link set dev "$netdev" up
echo 0 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
make_vfs "$pf" 3
start_libvirt
expect "hook install" vfpass hook install
expect "the guest is defined" define_guest attacker
give 'vlan: {id: 100}' 'spoof-check: true'
expect "the guest starts" virsh start attacker
for index in 1 2; do
    ip link set dev "$netdev" vf "$index" mac "02:00:00:00:0a:0$index"
    expect "VF $index is bound to mlx5_core" bind_to "$(vf_of "$pf" "$index")" mlx5_core
    expect "VF $index is in a namespace" put_in_namespace "$pf" "$index"
    name_vf "$index"
done
expect "the guest's agent answers" wait_for_agent attacker 400
vf_guest[0]=attacker
expect "the guest's netdev is up" guest_shell attacker 'ip link set dev eth0 up'
expect "it has a link" wait_until 60 vf_carrier_is 0 1
name_vf 0
expect_equal "it has the leased MAC" 02:00:00:00:0a:00 "${vf_mac[0]}"
took "the section"

section "VLAN, also changed while the guest runs"
others 100
reaches "the same VLAN"
others 200
reaches_not "another VLAN"
reaches_not "another VLAN, with its tag" "${vf_mac[0]}" "${vf_mac[1]}" 200
give 'vlan: {id: 200}' 'spoof-check: true'
reaches "the same VLAN after a change"
others 100
reaches_not "the former VLAN after a change"
give 'spoof-check: true'
reaches_not "without a VLAN, untagged"
reaches "without a VLAN, with the tag of the victim's" "${vf_mac[0]}" "${vf_mac[1]}" 100
took "the section"

section "spoof check"
give 'vlan: {id: 100}' 'spoof-check: true'
reaches_not "on: a foreign source MAC" "$stranger"
reaches_not "on: the witness's MAC" "${vf_mac[2]}"
give 'vlan: {id: 100}' 'spoof-check: false'
reaches "off: a foreign source MAC" "$stranger"
took "the section"

section "a guest that changes its own MAC, without trust"
give 'vlan: {id: 100}' 'spoof-check: false' 'trust: false'
expect "the guest sets a new MAC" set_own_mac "$stranger"
reaches "spoof check off: it can send from the new MAC" "$stranger"
expect_equal "frames for the new MAC go to it" "${vf_mac[1]}" "$(overhears "$stranger" "$stranger")"
give 'vlan: {id: 100}' 'spoof-check: true' 'trust: false'
reaches_not "spoof check on: it cannot send from the new MAC" "$stranger"
expect_equal "spoof check on: frames for the new MAC still go to it" "${vf_mac[1]}" "$(overhears "$stranger" "$stranger")"
expect "the guest sets the witness's MAC" set_own_mac "${vf_mac[2]}"
# as_twin RECEIVER: what this VF receives of frames from the victim to the MAC that the attacker and the witness both have now.
as_twin() {
    local own=${vf_mac[0]}
    vf_mac[0]=${vf_mac[2]}
    sender=1 receiver=$1 witness=1 patience=10 delivered "$stranger" "${vf_mac[2]}"
    vf_mac[0]=$own
}
expect_equal "the attacker gets a copy of the frames for the witness" "$stranger" "$(as_twin 0)"
expect_equal "the witness gets them, too" "$stranger" "$(as_twin 2)"
expect "the guest sets its own MAC" set_own_mac "${vf_mac[0]}"
reaches "it reaches the victim again"
took "the section"

section "trust"
expect "the guest asks for everything" guest_shell attacker "ip link set dev ${vf_netdev[0]} promisc on"
overhears_group() { test "$(overhears "$group")" = "$1"; }
expect "off: it does not hear a group of others" overhears_group ""
expect_equal "off: it does not hear frames between others" "" "$(overhears "${vf_mac[2]}")"
give 'vlan: {id: 100}' 'spoof-check: true' 'trust: true'
expect "on: it hears a group of others" wait_until 60 overhears_group "${vf_mac[1]}"
expect_equal "on: it does not hear frames between others" "" "$(overhears "${vf_mac[2]}")"
reaches_not "on: a foreign source MAC is still dropped" "$stranger"
give 'vlan: {id: 100}' 'spoof-check: true' 'trust: false'
expect "off again: it does not hear the group" wait_until 60 overhears_group ""
took "the section"

section "link state"
give 'vlan: {id: 100}' 'spoof-check: true' 'link-state: disable'
expect "disable: the guest has no link" wait_until 60 vf_carrier_is 0 0
reaches_not "disable: it reaches nobody"
expect_equal "disable: nobody reaches it" "" "$(patience=10 overhears "${vf_mac[0]}" | grep -vx 'no witness')"
give 'vlan: {id: 100}' 'spoof-check: true' 'link-state: enable'
expect "enable: the guest has a link" wait_until 60 vf_carrier_is 0 1
reaches "enable: it reaches the victim"
took "the section"

section "counters"
sent=$(vf_counter "$netdev" 0 tx) received=$(vf_counter "$netdev" 1 rx)
reaches "three frames arrive"
expect "the guest's VF has counted them" test "$(vf_counter "$netdev" 0 tx)" -ge $((sent + 3))
expect "the victim's VF has counted them and the witness's" test "$(vf_counter "$netdev" 1 rx)" -ge $((received + 4))
sent=$(vf_counter "$netdev" 0 tx)
reaches_not "frames with a foreign source MAC" "$stranger"
echo "   counted of three dropped frames: $(($(vf_counter "$netdev" 0 tx) - sent))"
took "the section"

section "MTU"
ip -n vf1 address add 10.99.0.2/24 dev "${vf_netdev[1]}"
guest_shell attacker "ip address add 10.99.0.1/24 dev ${vf_netdev[0]}"
pings() { guest_shell attacker "ping -c 2 -W 10 -s $1 10.99.0.2"; }
expect "1500: a full frame" pings 1472
expect "9000 in the guest" guest_shell attacker "ip link set dev ${vf_netdev[0]} mtu 9000"
expect "9000 for the victim" ip -n vf1 link set dev "${vf_netdev[1]}" mtu 9000
expect "a frame of 9000" pings 8972
took "the section"

section "the end"
expect_equal "the kernel has no complaint" "" "$(complaints)"
expect "the guest shuts down" shut_down_guest attacker 120
expect "detach" vfpass detach attacker
finish
