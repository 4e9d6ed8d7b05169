# shellcheck shell=bash
# Sourced by lib.sh: commands in the guest, through its agent.

agent_command() { virsh qemu-agent-command --timeout "${AGENT_TIMEOUT:-30}" "$1" "$2"; }

agent_answers() {
    virsh qemu-agent-command --timeout 2 "$1" '{"execute":"guest-ping"}' >/dev/null 2>&1
}

# wait_for_agent NAME SECONDS
#
# A guest of define_guest prints a line on its console when it starts the agent. Reading that
# starts no process; polling libvirt would take processor time from the guest.
wait_for_agent() {
    local console=/var/log/libvirt/qemu/$1-console.log end=$((SECONDS + $2))
    while [ -e "$console" ] && [[ $(<"$console") != *'guest: agent'* ]] && [ "$SECONDS" -lt "$end" ]; do
        sleep 1
        # A guest that is shut off writes nothing more; virsh costs as much as ten looks.
        [ $((SECONDS % 10)) != 0 ] || guest_running "$1" || break
    done
    until agent_answers "$1" >/dev/null 2>&1; do
        # A guest that is not running never answers.
        guest_running "$1" && [ "$SECONDS" -lt "$end" ] && sleep 0.2 && continue
        echo "wait_for_agent: $1 ($(virsh domstate "$1" 2>&1 | head -n 1)): no answer within $2 s; end of its console:" >&2
        tail -n 20 "$console" 2>/dev/null | tr -d '\000-\010\013-\037' >&2
        return 1
    done
}

# guest_exec NAME COMMAND [ARGUMENT...]: prints the command's output and returns its exit code, or
# 125 if the agent cannot be reached.
guest_exec() {
    local name=$1 request reply pid
    shift
    request=$(jq -nc --arg path "$1" '{execute: "guest-exec", arguments: {path: $path,
        arg: $ARGS.positional[1:], "capture-output": true}}' --args -- "$@") || return 125
    reply=$(agent_command "$name" "$request") || return 125
    pid=$(jq .return.pid <<<"$reply")
    reply=$(guest_exec_result "$name" "$pid") || return 125
    # The exit code on its own line, then the output: one process instead of four.
    reply=$(jq -j '.return | "\(.exitcode // 125)\n",
        (."out-data" // "" | @base64d), (."err-data" // "" | @base64d)' <<<"$reply")
    [ "$reply" = "${reply#*$'\n'}" ] || printf '%s\n' "${reply#*$'\n'}"
    return "${reply%%$'\n'*}"
}

guest_exec_result() {
    local end=$((SECONDS + ${AGENT_TIMEOUT:-60})) reply
    while [ "$SECONDS" -lt "$end" ]; do
        reply=$(agent_command "$1" \
            "{\"execute\":\"guest-exec-status\",\"arguments\":{\"pid\":$2}}") || return
        if [ "$(jq .return.exited <<<"$reply")" = true ]; then
            printf '%s\n' "$reply"
            return
        fi
    done
    echo "guest_exec: the command is still running" >&2
    return 1
}

# guest_shell NAME TEXT: runs a shell command in the guest. One round trip can answer several questions.
guest_shell() { guest_exec "$1" /bin/sh -c "$2"; }
