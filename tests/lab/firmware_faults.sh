# Commands of the card's firmware fail in each kind of work: attach, detach, a guest's start and stop, host apply. An undisturbed
# run shows in the card's log which commands the work causes. Then each of them fails once: the work is repeated until none is left
# to fail. After `recover` the host, the domain's XML and the leases are each time in the state before or after the work.
# With the argument "alone" only one of them fails in each attempt, with "lasting" the PF's commands fail until the work has ended.
# Further arguments: the kinds of work, see the functions setup_*.
# covers: src/apply src/host/sriov src/host/drivers src/hook src/commands/recover_command.cpp lab/connectx/faults.c
# shellcheck shell=bash disable=SC2154  # of lab/lib
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tiny.sh
source /vfpass/tests/lab/tiny.sh
# shellcheck source=SCRIPTDIR/firmware_work.sh
source /vfpass/tests/lab/firmware_work.sh

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

# each_fails_alone WORK: for work that cannot go back if its way back fails, too, see the section detached of firmware_card.sh.
each_fails_alone() {
    local work=$1 command function code said recovered result
    undisturbed "$work"
    while read -r function command <&3; do
        card 0 fault "$command" "function=$function" status=1 count=1 >/dev/null
        attempt "$work"
        recover_once
        card 0 clear >/dev/null
        verdict "$work: one $command of $function fails"
        [ "$result" != new ] || "undo_$work" >/dev/null 2>&1
        [ "$result" != neither ] || from_scratch "$work" >/dev/null 2>&1
    done 3</tmp/commands
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
    alone) works=each_fails_alone ;;
    lasting) works=each_fails ;;
    *) "$works" "$argument" ;;
    esac
done
scratch
finish_firmware_test
