#!/bin/bash
# startup.sh [RUNS]: compares small commands with /bin/true and, where it is installed, with virsh, in interleaved rounds on
# this machine, as any user, and counts the shared libraries that each loads. `empty` is a C++ program that does nothing:
#
#     bench/startup.sh 200
#
# VFPASS names another program to measure, such as that of an earlier build.
set -euo pipefail

bench=$(cd "$(dirname "$0")" && pwd)
checkout=$(dirname "$bench")
build=${VFPASS_BUILD:-$checkout/build}
vfpass=${VFPASS:-$build/sbin/vfpass}
runs=${1:-200}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$checkout/tests/hosts/make_host.py" functions-64 "$work/tree" >/dev/null
host=(--sysroot "$work/tree" --state-dir "$work" --config-dir "$work")

commands=(/bin/true)
counted=()

# libraries COMMAND...: how many the dynamic linker loads, those opened at run time included.
libraries() { { LD_DEBUG=libs "$@" 2>&1 >/dev/null || true; } | grep -c 'calling init: ' || true; }

# add [!] COMMAND...
add() {
    commands+=(-- "$@")
    [ "$1" != '!' ] || shift
    local name=${*##*/}
    counted+=("$(printf '%-28.28s %s' "$name" "$(libraries "$@")")")
}

add "$build/bench/empty"
add "$vfpass" --version
add "$vfpass" --help
add "$vfpass" attach --help
add ! "$vfpass" attac
add "$vfpass" topo "${host[@]}"
add "$vfpass" pf list "${host[@]}"
add "$vfpass" vf list "${host[@]}"
add "$vfpass" status --connect test:///default --state-dir "$work"
if command -v virsh >/dev/null; then
    add "$(command -v virsh)" --version
fi

echo "$runs runs each, interleaved; load average $(cut -d ' ' -f 1-3 /proc/loadavg)"
"$build/bench/interleave" "$runs" /dev/null "${commands[@]}"
echo "shared libraries:"
printf '%s\n' "${counted[@]}"
