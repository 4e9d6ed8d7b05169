# shellcheck shell=bash disable=SC2154
# Sourced by lab/prepare --guests real: makes the disks and the initramfs of the real guests (lib/real_guests.sh).

made guest-disk-initramfs "$build/guest-disk.cpio" "$lab/image/make-guest-disk-initramfs" "$build" -- \
    "$build/kernel/version" "$lab"/image/{make-guest-disk-initramfs,initramfs.sh,guest-disk-init}
for guest_release in bookworm trixie; do
    made "guest-disk-$guest_release" "$build/guests/$guest_release.ext4" "$lab/image/make-guest-disk" \
        "$guest_release" "$build/guests/$guest_release.ext4" "$lab/image/guest-packages" -- \
        "$lab"/image/{make-guest-disk,guest-disk-root,guest-packages,debian.sh}
done
