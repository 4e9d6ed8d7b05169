# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by lab/run: sets the exit code and, after a failure, prints the ends of the logs.

report() {
    local code
    if [ -s "$work/control/exit-code" ]; then
        code=$(cat "$work/control/exit-code")
    elif [ "${too_late:-no}" = yes ]; then
        code=$timed_out
    else
        code=$not_finished
    fi
    [ ${#others[@]} = 0 ] || ! another_host_failed "$code" || [ "$code" != 0 ] || code=$not_finished
    [ "$code" = 0 ] || explain "$code" >&2
    exit "$code"
}

explain() {
    show_end "$work/control/logs/libvirt/libvirtd.log" 30
    local log
    for log in "$work"/control/logs/libvirt/qemu/*.log; do
        show_end "$log" 30
    done
    show_end "$work/control/logs/dmesg" 40
    show_end "$work/console" 40
    case $1 in
    "$timed_out") echo "lab/run: timed out after $timeout s" ;;
    "$not_finished") echo "lab/run: the host under test crashed before the script ended" ;;
    *) echo "lab/run: $(basename "$script"): exit code $1" ;;
    esac
    echo "$repeat"
}

# Control characters from a boot loader or a guest must not reach the terminal.
show_end() {
    [ -s "$1" ] || return 0
    echo "----- the end of $(basename "$1")"
    tail -n "$2" "$1" | tr -d '\000-\010\013-\037'
}

clean_up() {
    stop_other_hosts
    [ -z "$qemu" ] || kill -KILL "$qemu" 2>/dev/null || :
    # Unblocks a reader that still waits for QEMU to open the pipe.
    [ ! -p "$work/output" ] || : <>"$work/output"
    # Suppresses the shell's message about the killed process.
    wait 2>/dev/null || :
    if [ -n "$keep" ]; then
        rm -f "$work/output"
        cp -r "$work/." "$keep/"
    fi
    rm -rf "$work"
}
