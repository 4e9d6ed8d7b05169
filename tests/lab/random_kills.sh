# attach, detach, host apply and the hook, killed at a random moment, a hundred times or as often as fits into 15 minutes.
# After recover the host is in the state before or after the command, and a second recover finds nothing.
# covers: src/apply src/state src/hook src/commands/recover_command.cpp src/plan/unused_leases.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

kills=${KILLS:-100} seconds=${KILL_SECONDS:-900}
seed=${KILL_SEED:-$(date +%s)}
RANDOM=$((seed % 32768))
echo "seed $seed"

install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
policy_pf=$(pf_address 1) policy_netdev=$(pf_netdev 1)
make_vfs "$pf" 4
make_vfs "$policy_pf" 4
ip link set dev "$netdev" vf 1 mac 02:aa:00:00:00:02 vlan 77
ip link set dev "$policy_netdev" vf 1 mac 02:aa:00:00:00:03 vlan 78
start_libvirt
vfpass hook install
define_guest a
settle a
mapping a rail0 "$pf" 'index: 1' 'vlan: {id: 11}'
snapshot_host /tmp/host.detached "$pf"
virsh dumpxml --inactive --security-info a >/tmp/xml.detached

vf_count() { find "/sys/bus/pci/devices/$policy_pf/" -maxdepth 1 -name 'virtfn*' | wc -l; }
# Not in a pipe: grep -q exits at the first match, and SIGPIPE would kill virsh.
is_attached() { grep -q ua-vfpass-rail0 <(virsh dumpxml --inactive a); }

# How long each command takes in milliseconds if it is not killed. The probe of each VF takes mlx5_core a large part of it.
declare -A duration=()
# measure NAME COMMAND...
measure() {
    local started=${EPOCHREALTIME//./}
    expect "$1, undisturbed" "${@:2}"
    duration[$1]=$(((${EPOCHREALTIME//./} - started) / 1000))
    echo "$1 takes ${duration[$1]} ms"
}

# end_after NAME PID COMMAND...: runs COMMAND at a random moment, during or shortly after the process, then waits for PID.
end_after() {
    local most=$((duration[$1] * 5 / 4)) milliseconds
    milliseconds=$(((RANDOM * 32768 + RANDOM) % most))
    sleep "$((milliseconds / 1000)).$(printf '%03d' $((milliseconds % 1000)))"
    "${@:3}" 2>/dev/null
    wait "$2" 2>/dev/null
}
kill_command() { kill -KILL "$1"; }
kill_hook() { pkill -KILL -f 'qemu.d/vfpass a '; }

# Checks the state after recover; prints a line for each fault.
faults() {
    if is_attached; then
        [ "$(driver_of "$(vf_of "$pf" 1)")" = vfio-pci ] || echo "attached, but the VF is not on vfio-pci"
        has_lease a || echo "attached, but there is no lease"
    else
        snapshot_host /tmp/host.now "$pf"
        diff /tmp/host.detached /tmp/host.now
        virsh dumpxml --inactive --security-info a | diff /tmp/xml.detached -
        no_lease || echo "detached, but there is a lease"
    fi
    [ "$(vf_count)" = 4 ] || [ "$(vf_count)" = 6 ] || echo "$(vf_count) VFs on the PF of host.yaml"
    grep -q '02:aa:00:00:00:03.*vlan 78' <(vf_attributes "$policy_netdev" 1) ||
        echo "the attributes that were set by hand are lost: $(vf_attributes "$policy_netdev" 1)"
    grep -q . /tmp/second.log && echo "a second recover found: $(cat /tmp/second.log)"
}

change_policy() {
    printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    virtual-function-count: %s\n    probe-virtual-functions: true\n' \
        "$policy_pf" $(($(vf_count) == 4 ? 6 : 4)) >/etc/vfpass/host.yaml
}

section "each command's duration"
for count in 6 4; do
    change_policy
    measure apply vfpass host apply
    expect_equal "the PF has $count VFs" "$count" "$(vf_count)"
done
rm -f /etc/vfpass/host.yaml
measure attach vfpass attach a
measure start virsh start a
virsh --quiet destroy a
expect "a is off" wait_until 30 guest_off a
measure detach vfpass detach a
expect "no lease" no_lease

section "up to $kills kills in $seconds s"
count_attach=0 count_detach=0 count_apply=0 count_hook=0
end=$((SECONDS + seconds))
for ((round = 1; round <= kills && SECONDS < end; round++)); do
    case $((RANDOM % 3)) in
    0)
        change_policy
        vfpass host apply >/tmp/command.log 2>&1 &
        command="host apply" count_apply=$((count_apply + 1))
        end_after apply $! kill_command $!
        rm -f /etc/vfpass/host.yaml
        ;;
    *)
        if is_attached && [ $((RANDOM % 2)) = 0 ]; then
            virsh start a >/tmp/command.log 2>&1 &
            command="start" count_hook=$((count_hook + 1))
            end_after start $! kill_hook
            virsh --quiet destroy a 2>/dev/null
            wait_until 30 guest_off a
        elif is_attached; then
            vfpass detach a >/tmp/command.log 2>&1 &
            command="detach" count_detach=$((count_detach + 1))
            end_after detach $! kill_command $!
        else
            vfpass attach a >/tmp/command.log 2>&1 &
            command="attach" count_attach=$((count_attach + 1))
            end_after attach $! kill_command $!
        fi
        ;;
    esac
    if ! vfpass recover >/tmp/first.log 2>&1; then
        # shellcheck disable=SC2034  # flunk prints it
        last_output=$(cat /tmp/command.log /tmp/first.log)
        flunk "round $round: recover after $command"
    fi
    vfpass recover >/tmp/second.log 2>&1
    found=$(faults)
    if [ -z "$found" ]; then
        pass "round $round: $command: $(is_attached && echo attached || echo detached), $(vf_count) VFs; $(head -n 1 /tmp/first.log)"
    else
        # shellcheck disable=SC2034  # flunk prints it
        last_output=$found$'\n'$(cat /tmp/command.log /tmp/first.log)
        flunk "round $round: $command"
    fi
done
echo "killed: attach $count_attach, detach $count_detach, host apply $count_apply, starts $count_hook"
finish
