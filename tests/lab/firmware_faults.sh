# Commands of the card's firmware fail in each kind of work: attach, detach, a guest's start and stop. An undisturbed
# run shows in the card's log which commands the work causes. Then each of them fails once: the work is repeated until none is left
# to fail. After `recover` the host, the domain's XML and the leases are each time in the state before or after the work.
# With the argument "lasting", commands of the PF fail until the work has ended. Further arguments: the kinds of work, see the
# functions setup_*.
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
        ip -d link show dev "$netdev" | grep -E '^ +vf | mtu '
        for link in "$directory"/virtfn*; do
            [ ! -e "$link" ] || echo "${link##*/}: $(readlink "$link/driver") $(<"$link/driver_override")"
        done
        virsh domstate v
        virsh dumpxml --inactive v | sed -E 's/ (generation|seal)=("[^"]*"|'"'[^']*'"')//g'
        stored_leases
    } >"$1" 2>&1
}

# scratch: no VFs, no lease.
scratch() {
    card 0 clear >/dev/null
    virsh --quiet destroy v
    vfpass recover
    vfpass detach v
    echo 0 >"$directory/sriov_numvfs"
    echo 0 >"$directory/sriov_drivers_autoprobe"
} >/tmp/scratch.log 2>&1

# Each kind of work: setup_X makes the old state from scratch, do_X is the work, undo_X makes the old state from the new one.

# attach creates the VF.
setup_create() { :; }
do_create() { vfpass attach v; }
undo_create() { vfpass detach v; }
# attach takes the VF from mlx5_core; detach gives it back.
setup_unbind() {
    make_vfs "$pf" 1 && ip link set dev "$netdev" vf 0 mac 02:00:00:00:0b:02 vlan 12 &&
        bind_to "$(vf_of "$pf" 0)" mlx5_core && echo >"$directory/virtfn0/driver_override"
}
do_unbind() { vfpass attach v; }
undo_unbind() { vfpass detach v; }
setup_rebind() { setup_unbind && vfpass attach v; }
do_rebind() { vfpass detach v; }
undo_rebind() { vfpass attach v; }

# The hook configures the VF at the start, and cleans it after the stop.
setup_start() { vfpass attach v && start && stop; }
do_start() { start; }
undo_start() { stop; }
setup_stop() { vfpass attach v && start; }
do_stop() { stop; }
undo_stop() { start; }

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
        same old || { expect_same_file "$work: the old state again" /tmp/state.old /tmp/state.now; from_scratch "$work"; }
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

works=each_fails_once
for argument; do
    case $argument in
    lasting) works=each_fails ;;
    *) "$works" "$argument" ;;
    esac
done
scratch
expect_equal "the kernel has not crashed" "" "$(dmesg | grep -E 'BUG:|Oops|general protection|hung task')"
finish
