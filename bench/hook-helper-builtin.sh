#!/bin/bash
# hook-helper-builtin.sh GUEST OPERATION SUBOPERATION EXTRA: a minimal hook in bash, which starts no process for a
# domain without its own directory.
directory="/etc/libvirt/hooks/qemu.d/$1/$2/$3"
set -e
if [ -d "$directory" ]; then
    for script in "$directory"/*; do
        [ ! -x "$script" ] || "$script" "$@"
    done
fi
