#!/bin/bash
# hook-helper.sh GUEST OPERATION SUBOPERATION EXTRA: the dispatcher that many install as
# /etc/libvirt/hooks/qemu: runs the scripts in qemu.d/GUEST/OPERATION/SUBOPERATION with the domain's
# XML as stdin. (The usual one calls basename and find; this one starts no process by itself.)
base=/etc/libvirt/hooks/qemu
guest=$1 operation=$2 suboperation=$3
folder="$base.d/$guest/$operation/$suboperation"
set -e
if [ -f "$folder" ]; then
    "$folder" "$@"
elif [ -d "$folder" ]; then
    for script in "$folder"/*; do
        [ ! -x "$script" ] || "$script" "$@"
    done
fi
