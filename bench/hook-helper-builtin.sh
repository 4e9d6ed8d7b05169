#!/bin/bash
# hook-helper-builtin.sh GUEST OPERATION SUBOPERATION EXTRA: the least that a hook in bash can be: it
# starts no process for a domain without a folder of its own.
folder="/etc/libvirt/hooks/qemu.d/$1/$2/$3"
set -e
if [ -d "$folder" ]; then
    for script in "$folder"/*; do
        [ ! -x "$script" ] || "$script" "$@"
    done
fi
