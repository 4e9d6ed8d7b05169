# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by lab/run: a second host under test, which another lab/run boots. QEMU connects the two by datagrams between
# two sockets, so it does not matter which one starts first.

# start_second_host OPTION...: with --hosts 2, boots the second host in the background with the same options.
start_second_host() {
    [ "$hosts" = 2 ] || return 0
    if [ -n "$link" ]; then
        script_arguments=(second "${script_arguments[@]}")
        return
    fi
    link=$work/link
    mkdir "$link"
    VFPASS_LAB_LINK=$link "$lab/run" "$@" >"$work/second.log" 2>&1 &
    second=$!
    script_arguments=(first "${script_arguments[@]}")
}

# link_arguments: the netdev of the link. The guest kernel names it after its driver, virtio_net.
link_arguments() {
    local own=first other=second mac=52:54:00:00:00:01
    [ "$hosts" = 2 ] || return 0
    [ -n "${second:-}" ] || { own=second; other=first; mac=52:54:00:00:00:02; }
    arguments+=(-netdev "dgram,id=link,local.type=unix,local.path=$link/$own,remote.type=unix,remote.path=$link/$other"
        -device "virtio-net-pci,netdev=link,host_mtu=9000,mac=$mac")
    share_arguments link "$link"
    echo 'link /lab/link rw,cache=none' >>"$work/control/shares"
}

# second_host_failed CODE: waits for the second host, or stops it if the first one failed with CODE; prints its log if
# either failed.
second_host_failed() {
    local code=0
    [ "$1" = 0 ] || kill -TERM "$second" 2>/dev/null || :
    wait "$second" || code=$?
    second=''
    [ "$code" != 0 ] || return 1
    echo "----- the second host" >&2
    cat "$work/second.log" >&2
    echo "----- the end of the second host's log: exit code $code" >&2
}
