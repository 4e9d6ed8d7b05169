# shellcheck shell=bash
# Sourced by the scripts that make an initramfs: adds busybox and the modules in loading order, and packs a cpio.

# new_tree BUILD_DIR: creates the directory of the initramfs and prints its path. The busybox is this machine's, unless the root has one.
new_tree() {
    local tree busybox=$1/root/bin/busybox
    [ -e "$busybox" ] || busybox=$(command -v busybox)
    # The initramfs has no libraries for a dynamically linked busybox.
    if ldd "$busybox" >/dev/null 2>&1; then
        echo "$busybox: not statically linked: install busybox-static" >&2
        return 1
    fi
    tree=$(mktemp -d "$1/initramfs.XXXXXX")
    mkdir -p "$tree"/{bin,sbin,dev,proc,sys,run,tmp,etc,modules}
    chmod 755 "$tree"
    cp "$busybox" "$tree/bin/busybox"
    echo "$tree"
}

# add_modules BUILD_DIR TREE NAME...: adds the modules with their dependencies and a list in
# loading order, so that the init only needs insmod.
add_modules() {
    local build=$1 tree=$2 name path release
    shift 2
    release=$(cat "$build/kernel/release")
    for name; do
        modprobe -d "$build/modules" -S "$release" --show-depends "$name" |
            awk '$1 == "insmod" {print $2}'
    done | awk '!seen[$0]++' | while read -r path; do
        # Debian 13 compresses modules; decompression is slow under emulation.
        case $path in
        *.xz) xz -dc "$path" >"$tree/modules/$(basename "$path" .xz)" ;;
        *) cp "$path" "$tree/modules/" ;;
        esac
        basename "$path" .xz >>"$tree/modules/order"
    done
}

# pack TREE FILE: packs an uncompressed cpio, because decompression is slow under emulation.
pack() {
    (cd "$1" && find . -mindepth 1 | LC_ALL=C sort |
        cpio --quiet -o -H newc --owner=0:0) >"$2.new"
    mv "$2.new" "$2"
    rm -rf "$1"
}
