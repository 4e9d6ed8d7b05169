# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by lab/run and lab/prepare: chooses the QEMU for a machine. A line "# needs: DEVICE" in the machine's file
# names a device that this machine's own QEMU may lack; in that case the newer QEMU is used that `lab/prepare
# --machine NAME` unpacks into the build directory. No QEMU has the device "connectx": it is a library (lab/connectx) that
# is loaded into this machine's own QEMU.

# needed_device MACHINE: prints the needed device, or nothing if every QEMU can run the machine.
needed_device() { sed -n 's/^# needs: //p' "$lab/machines/$1"; }

# lacks_device DEVICE: whether this machine's own QEMU lacks DEVICE. QEMU's exit code is 0 in both cases.
lacks_device() { [[ $(qemu-system-x86_64 -device "$1,help" 2>&1) != "$1 options:"* ]]; }

# needs_emulator MACHINE
needs_emulator() {
    local device
    device=$(needed_device "$1")
    [ -n "$device" ] && [ "$device" != connectx ] && lacks_device "$device"
}

# unpacked_emulator DIRECTORY: sets the array emulator. Programs of a newer release need their own loader and
# libraries.
unpacked_emulator() {
    local libraries=$1/usr/lib/x86_64-linux-gnu share=$1/usr/share
    emulator=(env "QEMU_MODULE_DIR=$libraries/qemu" "$libraries/ld-linux-x86-64.so.2"
        --library-path "$libraries" "$1/usr/bin/qemu-system-x86_64"
        -L "$share/qemu" -L "$share/seabios")
}

choose_emulator() {
    emulator=(qemu-system-x86_64)
    [ "$(needed_device "$machine")" != connectx ] || emulator=(env "LD_PRELOAD=$build/connectx/connectx.so" "${emulator[@]}")
    needs_emulator "$machine" || return 0
    [ -e "$build/emulator/usr/bin/qemu-system-x86_64" ] ||
        fail "machine $machine needs a newer QEMU: run lab/prepare --machine $machine"
    unpacked_emulator "$build/emulator"
}
