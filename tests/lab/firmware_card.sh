# A firmware command that never answers, a card that dies with a VF in a guest and while attach runs, VFs that an administrator
# removes while attach runs, and a driver that is left without its netdev's data. Arguments: these sections. The last one leaves a
# host that must be rebooted.
# covers: src/apply src/host/sriov src/host/netlink src/hook src/model/port_fault.cpp lab/connectx/faults.c
# shellcheck shell=bash disable=SC2154  # of lab/lib
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh
# shellcheck source=SCRIPTDIR/firmware_work.sh
source /vfpass/tests/lab/firmware_work.sh

# never_answered WORK FUNCTION COMMAND EXIT_CODE: mlx5 gives a command up after 60 s. vfpass may do so before, or wait.
never_answered() {
    local work=$1 title="$1: $3 of $2 is never answered" began
    section "$title"
    both_states "$work"
    began=$SECONDS
    card 0 fault "$3" "function=$2" never count=1 >/dev/null
    expect_exit "$4" "$title: exit code $4" "do_$work"
    echo "   it took $((SECONDS - began)) s: $last_output"
    [ "$4" = 0 ] || expect "$title: the error names the card" has_clear_error "$last_output"
    card 0 clear >/dev/null
    expect "$title: recover succeeds once mlx5 has given up" wait_until 180 vfpass recover
    echo "   recover has succeeded after $((SECONDS - began)) s"
    expect "$title: the host is in the old or the new state" is_one_of_both
    [ "$last_code" = 0 ] || diff /tmp/state.old /tmp/state.now
    expect "$title: a second recover has nothing to do" test "$(vfpass recover 2>&1)" = "vfpass: nothing to do: no operation was interrupted"
    scratch
}

never() {
    never_answered create pf ENABLE_HCA 1
    never_answered start_without_vfs pf ENABLE_HCA 1
    never_answered unbind vf0 TEARDOWN_HCA 1
    # mlx5 ignores that this command fails while it creates the VF, and attach sends it again.
    never_answered create pf MODIFY_VPORT_STATE 0
}

has_no_netdev() { test -z "$(netdev_of "$pf")"; }

has_its_netdev() { test -n "$(netdev_of "$pf")" && ip -d link show dev "$netdev" | grep -q ' vf 0 '; }

# revive: the card works again, and an administrator has the driver recover it.
revive() {
    card 0 recover
    wait_until 60 devlink health recover "pci/$pf" reporter fw_fatal
    wait_until 60 has_its_netdev
}

# other_is_unaffected TITLE: the guest on the other card.
other_is_unaffected() {
    expect "$1: the other card's guest is active" is_active w
    expect_contains "$1: its VF has its VLAN" "vlan 21" vf_attributes "$(pf_netdev 1)" 0
    expect_equal "$1: its lease is running" running "$(lease_state w)"
}

dead() {
    section "a card dies while a guest has one of its VFs"
    scratch
    expect "a second domain is defined" define_tiny w
    mapping w rail0 "$(pf_address 1)" 'index: 0' 'mac: 02:00:00:00:0c:01' 'vlan: {id: 21}'
    expect "attach w on the other card" vfpass attach w
    expect "w starts" start_paused w
    both_states start
    expect "v starts" start
    other_is_unaffected "at first"
    card 0 die >/dev/null
    expect "mlx5 notices and removes the PF's netdev" wait_until 120 has_no_netdev
    took "noticing"
    expect_exit 3 "status reports it" vfpass status v
    expect_said "status names the PF" "$pf"
    echo "$last_output"
    expect_exit 1 "doctor reports it" vfpass doctor
    expect_said "doctor names the PF" "$pf"
    grep -E "$pf" <<<"$last_output"
    refuse "verify fails" vfpass verify v
    expect_exit 1 "another attach is refused" vfpass attach v
    echo "$last_output"
    other_is_unaffected "with the card dead"
    expect "v can be stopped" stop
    expect_exit 1 "recover with the card dead" vfpass recover
    expect "its error names the card" has_clear_error "$last_output"
    echo "$last_output"
    expect_exit 1 "v does not start" start
    echo "$last_output"
    other_is_unaffected "after the stop"
    expect "the card is back" revive
    expect "recover" vfpass recover
    echo "$last_output"
    state /tmp/state.now
    expect_same_file "the host is in the state before the start" /tmp/state.old /tmp/state.now
    expect "v starts again" start
    state /tmp/state.now
    expect_same_file "it has its VF" /tmp/state.new /tmp/state.now
    expect "v stops" stop
    other_is_unaffected "at the end"
    stop_hard w
    expect "detach w" vfpass detach w
    expect "w is undefined" virsh --quiet undefine w
    scratch
}

# interrupted_attach COMMAND...: runs COMMAND while attach waits for the card.
interrupted_attach() {
    local attach began=$SECONDS
    card 0 fault MODIFY_VPORT_STATE late=8000 count=1 >/dev/null
    vfpass -v attach v >/tmp/attach.log 2>&1 &
    attach=$!
    expect "attach configures the VF" wait_until 30 grep -q 'configure PF' /tmp/attach.log
    "$@"
    wait "$attach"
    last_code=$? last_output=$(cat /tmp/attach.log)
    card 0 clear >/dev/null
    echo "   exit code $last_code after $((SECONDS - began)) s: $last_output"
}

vanishing() {
    section "an administrator removes the VFs while attach runs"
    scratch
    make_vfs "$pf" 1
    state /tmp/state.old
    interrupted_attach make_vfs "$pf" 0
    expect_equal "attach fails" 1 "$last_code"
    expect "its error names the card" has_clear_error "$(</tmp/attach.log)"
    expect "recover" vfpass recover
    state /tmp/state.now
    echo "   $last_output"
    grep -vE '^VFs| vf 0 |^virtfn0' /tmp/state.old >/tmp/state.without
    grep -v '^VFs' /tmp/state.now >/tmp/state.rest
    expect_same_file "only the VF is missing" /tmp/state.without /tmp/state.rest
    expect "a new attach" vfpass attach v
    expect "detach" vfpass detach v

    section "the card dies while attach runs"
    scratch
    make_vfs "$pf" 1
    state /tmp/state.old
    interrupted_attach card 0 die
    expect_equal "attach fails" 1 "$last_code"
    expect "its error names the card" has_clear_error "$(</tmp/attach.log)"
    capture vfpass recover
    echo "   recover with the card dead: exit code $last_code: $last_output"
    expect "mlx5 notices" wait_until 120 has_no_netdev
    expect "the card is back" revive
    expect "recover" vfpass recover
    state /tmp/state.now
    expect_same_file "the host is in the old state" /tmp/state.old /tmp/state.now
    scratch
}

# detached_is_said TITLE: after a command.
detached_is_said() {
    local said=$last_output
    expect_said "$1 says what happened" "its driver has detached"
    expect_equal "$1: exit code 1" 1 "$last_code"
    expect "$1 names the card" has_clear_error "$said"
}

# Linux 6.1's mlx5 keeps a netdev without data then: whatever asks it for VFs, `ip link` too, crashes the kernel.
detached() {
    section "the eswitch mode cannot be changed, nor changed back"
    scratch
    require "a second domain is defined" define_tiny w
    mapping w rail0 "$(pf_address 1)" 'index: 0' 'mac: 02:00:00:00:0c:01' 'vlan: {id: 21}'
    require "attach w on the other card" vfpass attach w
    require "w starts" start_paused w
    setup_mode
    card 0 fault CREATE_CQ function=pf status=1 >/dev/null
    capture vfpass host apply
    echo "$last_output"
    detached_is_said "host apply"
    card 0 clear >/dev/null
    expect_contains "mlx5 has lost its way back" "failed to rollback to orig profile" dmesg
    capture vfpass recover
    echo "$last_output"
    detached_is_said recover
    capture vfpass host apply
    detached_is_said "a second host apply"
    capture vfpass attach v
    detached_is_said "attach"
    capture vfpass check v
    detached_is_said "check"
    capture vfpass doctor
    detached_is_said "doctor"
    expect "status of the other VM" vfpass status w
    expect "vf list" vfpass vf list
    expect "pf list" vfpass pf list
    expect_exit 3 "host show" vfpass host show
    expect "snapshot" vfpass snapshot /tmp/snapshot
    expect_exit 1 "doctor finds it in the snapshot" vfpass doctor --sysroot /tmp/snapshot
    expect_said "doctor says so" "its driver has detached"
    other_is_unaffected "afterwards"
    stop_hard w
    expect "w starts again" start_paused w
    stop_hard w
    expect "detach w" vfpass detach w
}

for section; do
    "$section"
done
finish_firmware_test
