#!/bin/bash
# hook-helper.sh GUEST OPERATION SUBOPERATION EXTRA: the dispatcher that many guides install as
# /etc/libvirt/hooks/qemu. It runs the scripts in qemu.d/GUEST/OPERATION/SUBOPERATION. For a domain without such a
# directory it starts one process, dirname, as the usual one does.
base=$(dirname "$0")
directory="$base/qemu.d/$1/$2/$3"
set -e
if [ -f "$directory" ]; then
    "$directory" "$@"
elif [ -d "$directory" ]; then
    while read -r script; do
        "$script" "$@"
    done <<<"$(find -L "$directory" -maxdepth 1 -type f -executable)"
fi
