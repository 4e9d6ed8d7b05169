# Sourced by the tests of the shells: the lines to complete. Each shell defines complete_line, which sets `found`, one candidate
# on each line, and sets `address`, the end of 0000:01:00.0 that it inserts, and `folder`, that of a file if it inserts it as well.
# shellcheck shell=bash disable=SC2154

# expect LINE CANDIDATE...: the line has these candidates.
expect() {
    local line=$1 wanted
    shift
    wanted=$(printf '%s\n' "$@")
    complete_line "$line"
    [ "$found" = "$wanted" ] || {
        printf 'FAILED: %s\n  wanted: %s\n  found:  %s\n' "$line" "${wanted//$'\n'/ }" "${found//$'\n'/ }" >&2
        failed=1
    }
}

# check_lines SHELL
check_lines() {
    local failed=0 tree
    tree=$work/tree
    "$(dirname "$0")/../hosts/make_host.py" nic-alone "$tree" >/dev/null
    mkdir -p "$work/vms"
    printf 'version: 1\nvm: %s\nvfs: [{name: rail0, pf: {pci: "0000:3b:00.0"}}]\n' train-00 >"$work/vms/a.yaml"
    printf 'version: 1\nvm: %s\nvfs: [{name: rail0, pf: {pci: "0000:3b:00.0"}}]\n' 'rack 1' >"$work/vms/b.yaml"
    touch "$work/file.yaml"
    expect 'vfpass at' attach
    expect 'vfpass sn' snapshot
    expect 'vfpass pf ' list
    expect 'vfpass topo --form' --format
    expect 'vfpass topo --format ' json matrix nccl svg tree
    expect "vfpass --config-dir $work attach train" train-00
    expect "vfpass --config-dir $work history train" train-00
    expect "vfpass check $work/fi" "$folder"file.yaml
    expect 'vfpass attach --no-such' ''
    expect "vfpass --sysroot $tree vf list --pf enp" enp1s0np0
    expect "vfpass --sysroot $tree vf list --pf 0000:01:" "$address"
    ! declare -F own_lines >/dev/null || own_lines
    [ "$failed" = 0 ] && echo "$1: passed"
    exit "$failed"
}
