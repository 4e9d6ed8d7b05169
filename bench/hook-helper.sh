#!/bin/bash
# hook-helper.sh GUEST OPERATION SUBOPERATION EXTRA: the dispatcher that many guides have people
# install as /etc/libvirt/hooks/qemu: runs what is in qemu.d/GUEST/OPERATION/SUBOPERATION. For a domain
# without such a folder it starts one process, dirname, as the usual one does.
base=$(dirname "$0")
folder="$base/qemu.d/$1/$2/$3"
set -e
if [ -f "$folder" ]; then
    "$folder" "$@"
elif [ -d "$folder" ]; then
    while read -r script; do
        "$script" "$@"
    done <<<"$(find -L "$folder" -maxdepth 1 -type f -executable)"
fi
