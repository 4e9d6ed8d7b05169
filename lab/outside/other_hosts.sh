# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by lab/run: further hosts under test, which other lab/runs boot. QEMU connects each of them with the first one by
# datagrams between two sockets, so it does not matter which one starts first.

# The hosts' names in the order of their numbers.
host_roles=(first second third)

# start_other_hosts OPTION...: with --hosts 2 or 3, boots the others in the background with the same options.
start_other_hosts() {
    local role
    others=()
    [ "$hosts" -gt 1 ] || return 0
    own_role=${VFPASS_LAB_ROLE:-first}
    script_arguments=("$own_role" "${script_arguments[@]}")
    [ "$own_role" = first ] || return 0
    link=$work/link
    mkdir "$link"
    for role in "${host_roles[@]:1:hosts-1}"; do
        VFPASS_LAB_LINK=$link VFPASS_LAB_ROLE=$role "$lab/run" "$@" >"$work/$role.log" 2>&1 &
        others+=("$!:$role")
    done
}

# host_number: counted from 1.
host_number() {
    local number
    for number in 1 2 3; do
        [ "${own_role:-first}" != "${host_roles[number - 1]}" ] || echo "$number"
    done
}

# link_arguments: the netdevs of the links, one for each other host on the first one. The guest kernel names them after
# their driver, virtio_net.
link_arguments() {
    local number role
    [ "$hosts" -gt 1 ] || return 0
    for ((number = 1; number < hosts; number++)); do
        role=${host_roles[number]}
        if [ "$own_role" = first ]; then
            link_to "$role" "first-$role" "$role-first" "52:54:00:00:01:0$number"
        elif [ "$own_role" = "$role" ]; then
            link_to first "$role-first" "first-$role" "52:54:00:00:00:0$number"
        fi
    done
    share_arguments link "$link"
    echo 'link /lab/link rw,cache=none' >>"$work/control/shares"
}

# link_to HOST OWN_SOCKET OTHER_SOCKET MAC
link_to() {
    arguments+=(-netdev "dgram,id=link-$1,local.type=unix,local.path=$link/$2,remote.type=unix,remote.path=$link/$3"
        -device "virtio-net-pci,netdev=link-$1,host_mtu=9000,mac=$4")
}

# another_host_failed CODE: waits for the other hosts, or stops them if the first one failed with CODE; prints the log of each
# that failed, and all logs if the first one did.
another_host_failed() {
    local other code failed=1
    for other in "${others[@]}"; do
        [ "$1" = 0 ] || kill -TERM "${other%%:*}" 2>/dev/null || :
    done
    for other in "${others[@]}"; do
        code=0
        wait "${other%%:*}" || code=$?
        [ "$code" != 0 ] || continue
        failed=0
        echo "----- the ${other#*:} host" >&2
        cat "$work/${other#*:}.log" >&2
        echo "----- the end of the ${other#*:} host's log: exit code $code" >&2
    done
    others=()
    return "$failed"
}

stop_other_hosts() {
    local other
    for other in "${others[@]:-}"; do
        [ -z "$other" ] || kill -TERM "${other%%:*}" 2>/dev/null || :
    done
}
