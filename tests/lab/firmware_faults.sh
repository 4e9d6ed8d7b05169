# Commands of the card's firmware fail in each kind of work: attach, detach, a guest's start and stop, host apply. An undisturbed
# run shows in the card's log which commands the work causes. Then each of them fails once: the work is repeated until none is left
# to fail. After `recover` the host, the domain's XML and the leases are each time in the state before or after the work.
# With the argument "lasting", commands of the PF fail until the work has ended. Further arguments: the kinds of work, see the
# functions setup_*, and the sections never, dead and vanishing.
# covers: src/apply src/host/sriov src/host/drivers src/hook src/cli/recover_command.cpp lab/connectx/faults.c
# shellcheck shell=bash disable=SC2154  # of lab/lib
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh

export LC_ALL=C
card_log=/lab/control/pf0.log

install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0) directory=/sys/bus/pci/devices/$(pf_address 0)
# VFs are bound to mlx5_core only where a kind of work needs it: a probe takes seconds here.
echo 0 >"$directory/sriov_drivers_autoprobe"
start_libvirt
expect "hook install" vfpass hook install
expect "the domain is defined" define_tiny v
mapping v rail0 "$pf" 'index: 0' 'mac: 02:00:00:00:0a:01' 'vlan: {id: 11}' 'spoof-check: true' 'trust: true' \
    'link-state: enable' 'rate: {max: 1000}'
echo 'allow: [trust]' >>"$vms/v.yaml"

# policy LINE...: writes host.yaml with this PF.
policy() {
    printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n' "$pf" >/etc/vfpass/host.yaml
    printf '    %s\n' "$@" >>/etc/vfpass/host.yaml
}

start() { virsh --quiet start --paused v; }
# libvirt has called the hook when this returns.
stop() { virsh --quiet destroy v; }

# stored_leases: what the database has, without the time that `vfpass status` takes here.
stored_leases() {
    python3 -ES -c 'import sqlite3
database = sqlite3.connect("file:/var/lib/vfpass/vfpass.db?mode=ro", uri=True)
for table, columns in ("leases", "vf_name, pf, vf_index, state"), ("operations", "kind, domain_name"):
    for row in database.execute(f"SELECT {columns} FROM {table} ORDER BY 1"):
        print(table, *row)' || echo "unreadable at $EPOCHREALTIME" # equal to no other state
}

# orders: gives the card the orders of the standard input, one per line, as lab/connectx/control does with one.
orders() {
    perl -e 'open($config, "+<", shift) or die; while (<STDIN>) {
        sysseek($config, 1032, 0) && syswrite($config, $_) && sysseek($config, 1032, 0) && sysread($config, $reply, 504) or die;
        die "$_: $reply\n" if $reply =~ /^error/ }' "$directory/config"
}

# state FILE: what has to be the old or the new one. The generation of a lease counts the attaches.
state() {
    local link
    {
        echo "VFs: $(<"$directory/sriov_numvfs"), autoprobe $(<"$directory/sriov_drivers_autoprobe")"
        # Without its index: a netdev that mlx5 has made again has another one.
        ip -d link show dev "$netdev" | grep -E '^ +vf | mtu ' | sed -E 's/^[0-9]+: //'
        # Without the inline mode: after a change that failed, mlx5 reports another one than before, though the mode is the old one.
        devlink -j dev eswitch show "pci/$pf" | jq -r '.dev[].mode'
        for link in "$directory"/virtfn*; do
            [ ! -e "$link" ] || echo "${link##*/}: $(readlink "$link/driver") $(<"$link/driver_override")"
        done
        virsh domstate v
        virsh dumpxml --inactive v | sed -E 's/ (generation|seal)=("[^"]*"|'"'[^']*'"')//g'
        stored_leases
    } >"$1" 2>&1
}

# scratch: no VFs, no lease, legacy mode, no host.yaml.
scratch() {
    card 0 clear >/dev/null
    virsh --quiet destroy v
    vfpass recover
    vfpass detach v
    echo 0 >"$directory/sriov_numvfs"
    devlink dev eswitch set "pci/$pf" mode legacy
    rm -f /etc/vfpass/host.yaml
    echo 0 >"$directory/sriov_drivers_autoprobe"
} >/tmp/scratch.log 2>&1

# Each kind of work: setup_X makes the old state from scratch, do_X is the work, undo_X makes the old state from the new one.

# attach creates the VF; detach removes it.
setup_create() { :; }
do_create() { vfpass attach v; }
undo_create() { vfpass detach v; }
setup_remove() { vfpass attach v; }
do_remove() { vfpass detach v; }
undo_remove() { vfpass attach v; }

# attach takes the VF from mlx5_core; detach gives it back.
setup_unbind() {
    make_vfs "$pf" 1 && ip link set dev "$netdev" vf 0 mac 02:00:00:00:0b:02 vlan 12 &&
        bind_to "$(vf_of "$pf" 0)" mlx5_core && echo >"$directory/virtfn0/driver_override"
}
do_unbind() { vfpass attach v; }
undo_unbind() { vfpass detach v; }
setup_rebind() { setup_unbind && vfpass attach v; }
do_rebind() { vfpass detach v; }
# A VF that mlx5_core drives without a netdev could be anybody's, so attach refuses it until it is bound again.
undo_rebind() {
    local vf
    vf=$(vf_of "$pf" 0)
    if [ -z "$(netdev_of "$vf")" ]; then bind_to "$vf" mlx5_core && echo >"$directory/virtfn0/driver_override"; fi
    vfpass attach v
}

# The hook configures the VF at the start, and cleans it after the stop.
setup_start() { vfpass attach v && start && stop; }
do_start() { start; }
undo_start() { stop; }
setup_stop() { vfpass attach v && start; }
do_stop() { stop; }
undo_stop() { start; }

# The hook creates the VFs, which did not survive a reboot.
setup_start_without_vfs() { vfpass attach v && echo 0 >"$directory/sriov_numvfs"; }
do_start_without_vfs() { start; }
undo_start_without_vfs() { stop && echo 0 >"$directory/sriov_numvfs"; }

# host apply: another count with attributes that stay, and another eswitch mode.
setup_count() {
    make_vfs "$pf" 1 && ip link set dev "$netdev" vf 0 mac 02:00:00:00:0b:02 vlan 12 trust on && policy 'virtual-function-count: 2'
}
do_count() { vfpass host apply; }
undo_count() {
    policy 'virtual-function-count: 1' && vfpass host apply && policy 'virtual-function-count: 2'
}
setup_mode() { make_vfs "$pf" 1 && policy 'embedded-switch-mode: switchdev'; }
do_mode() { vfpass host apply; }
undo_mode() {
    policy 'embedded-switch-mode: legacy' && vfpass host apply && policy 'embedded-switch-mode: switchdev'
}

# from_scratch WORK: sets up the old state.
from_scratch() {
    scratch
    "setup_$1"
}

# Read in the background, too, or by every look at the VFs.
background='ACCESS_REG|QUERY_Q_COUNTER|QUERY_VPORT_COUNTER'

log_length() { wc -l <"$card_log"; }

# commands_since LINE [TEXT]: "FUNCTION COMMAND" for each command in the card's log after the line, or each whose line has TEXT.
commands_since() {
    tail -n "+$(($1 + 1))" "$card_log" | grep -F -- "${2:- }" |
        awk '$2 != "-" { sub(":.*", "", $3); print $2, $3 }' | grep -vE " ($background)$" | sort -u
}

same() { cmp -s "/tmp/state.$1" /tmp/state.now; }

# has_clear_error TEXT: it names the card, by address or netdev.
has_clear_error() { grep -qE "${pf%.*}|$netdev" <<<"$1"; }

# is_one_of_both: sets result to old, new or neither.
is_one_of_both() {
    state /tmp/state.now
    result=neither
    if same old; then result=old; elif same new; then result=new; fi
    [ "$result" != neither ]
}

# verdict TITLE: of a work with the exit code $code and the output $said, after `recover` with $recovered.
verdict() {
    if is_one_of_both && [ "$recovered" = 0 ] && { [ "$code" = 0 ] || has_clear_error "$said"; } &&
        { [ "$code" != 0 ] || [ "$result" = new ]; } && [[ " 0 1 5 " == *" $code "* ]]; then
        pass "$1: exit code $code, the $result state"
        [ "$code" = 0 ] || echo "     | ${said//$'\n'/$'\n'     | }"
    else
        last_output=$said$'\n'$(diff "/tmp/state.$([ "$code" = 0 ] && echo new || echo old)" /tmp/state.now)
        flunk "$1: exit code $code, recover $recovered, the state is: $result"
    fi
}

# undisturbed WORK: notes the states before and after the work and the commands between them, and makes the old state again.
undisturbed() {
    local before
    section "$1"
    scratch
    require "$1: the old state" "setup_$1"
    state /tmp/state.old
    before=$(log_length)
    require "$1: the work" "do_$1"
    commands_since "$before" >/tmp/commands
    state /tmp/state.new
    expect "$1: the work changes something" test -s /tmp/commands -a -n "$(diff /tmp/state.old /tmp/state.new)"
    expect "$1: the way back" "undo_$1"
    state /tmp/state.now
    expect_same_file "$1: the state is the old one again" /tmp/state.old /tmp/state.now
    echo "   commands: $(paste -sd, /tmp/commands)"
    took "$1 without faults"
}

# attempt WORK: does it and recovers. Sets code, said and recovered.
attempt() {
    capture "do_$1"
    code=$last_code said=$last_output
    recovered=0
}

# recover_once: adds to said.
recover_once() {
    capture vfpass recover
    recovered=$last_code said+=$'\n'"recover: exit code $last_code: $last_output"
}

# attempts_with_faults WORK: repeats the work until it has succeeded. Each command that fails uses its fault up, so there is an end.
attempts_with_faults() {
    local work=$1 first before failed code said recovered result=old
    while [ "$result" = old ] && [ "$attempts" -lt 100 ]; do
        attempts=$((attempts + 1))
        first=$(log_length)
        before=$first
        attempt "$work"
        # libvirt ignores what the hook says about a stop.
        if [ "$code" != 0 ] || [ "$work" = stop ]; then recover_once; fi
        while [ "$recovered" != 0 ] && [ -n "$(commands_since "$before" fault)" ]; do
            before=$(log_length)
            recover_once
        done
        failed=$(commands_since "$first" fault | tee -a /tmp/failed | paste -sd,)
        verdict "$work, attempt $attempts: fails: ${failed:-nothing}"
    done
}

# each_fails_once WORK: all faults are there from the beginning. A failed command can keep the driver from the next one, so there
# are further rounds for those that are left, until a round passes without any of them.
each_fails_once() {
    local work=$1 attempts=0
    undisturbed "$work"
    cp /tmp/commands /tmp/left
    while [ -s /tmp/left ]; do
        sed -E 's/(.*) (.*)/fault \2 function=\1 status=1 count=1/' /tmp/left | orders
        : >/tmp/failed
        attempts_with_faults "$work"
        card 0 clear >/dev/null
        "undo_$work" >/tmp/undo.log 2>&1
        state /tmp/state.now
        same old || {
            expect_same_file "$work: the old state again" /tmp/state.old /tmp/state.now
            cat /tmp/undo.log
            from_scratch "$work"
        }
        mv /tmp/left /tmp/all
        sort -u /tmp/failed | comm -23 /tmp/all - >/tmp/left
        if cmp -s /tmp/all /tmp/left; then
            echo "   only in the first run: $(paste -sd, /tmp/left)"
            break
        fi
    done
    took "$work"
}

# each_fails WORK: commands that change something on the PF, one after the other, fail until the work has ended.
each_fails() {
    local work=$1 command code said recovered result
    undisturbed "$work"
    while read -r command <&3; do
        card 0 fault "$command" function=pf status=1 >/dev/null
        attempt "$work"
        card 0 clear >/dev/null
        recover_once
        verdict "$work: $command fails"
        [ "$result" != new ] || "undo_$work" >/dev/null 2>&1
        [ "$result" != neither ] || from_scratch "$work" >/dev/null 2>&1
    done 3< <(awk '$1 == "pf" && $2 !~ /QUERY|MANAGE_PAGES/ { print $2 }' /tmp/commands)
    took "$work"
}

# both_states WORK: notes the state before and after the undisturbed work, and makes the old one again.
both_states() {
    from_scratch "$1"
    state /tmp/state.old
    "do_$1" >/tmp/work.log 2>&1
    state /tmp/state.new
    "undo_$1" >/tmp/undo.log 2>&1
}

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
    expect "$title: a second recover has nothing to do" test -z "$(vfpass recover 2>&1)"
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

works=each_fails_once
for argument; do
    case $argument in
    lasting) works=each_fails ;;
    dead) dead ;;
    vanishing) vanishing ;;
    never) never ;;
    *) "$works" "$argument" ;;
    esac
done
scratch
# A soft lockup only shows that this machine is busy.
expect_equal "the kernel has not crashed" "" "$(dmesg | grep -E 'BUG:|Oops|general protection|hung task' | grep -v 'soft lockup')"
finish
