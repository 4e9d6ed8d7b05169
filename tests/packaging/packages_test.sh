#!/bin/bash
# packages_test.sh [--release NAME] [DIRECTORY]: the packages of DIRECTORY, or of HEAD, built twice and compared. lintian, the
# content of the rpms, and in a new Debian of this machine's release installation and upgrade by apt from a signed repository,
# removal and purge. With --release, the debs of DIRECTORY are for that release, and there need be no rpms
# (`lab/prepare --release NAME --packages deb` builds them). Needs root and Debian's mirror.
set -euo pipefail

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"
release=$(own_release)
if [ "${1:-}" = --release ]; then
    [ $# = 3 ] || { echo "--release needs a name and a directory" >&2; exit 2; }
    release=$2
    shift 2
fi
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -gt 0 ]; then
    results=$(realpath "$1")
else
    results=$work/results
    "$checkout/scripts/release" --compare --output "$results"
fi
debs=("$results"/*.deb)

# --allow-root: lintian only reads.
expect "lintian reports no error or warning" lintian --allow-root --fail-on error,warning "${debs[@]}"

# README: no drivers, firmware or images, no change of the boot configuration.
for deb in "${debs[@]}"; do
    dpkg-deb --contents "$deb"
done >"$work/content-of-debs"
expect "the list of files has those of the package" grep -q ' \./usr/sbin/vfpass$' "$work/content-of-debs"
system='boot|(usr/)?lib/(modules|firmware|modprobe\.d|modules-load\.d|sysctl\.d|dracut|kernel)|usr/src|usr/share/(initramfs-tools|qemu)'
system+='|etc/(default|grub\.d|modprobe\.d|modules-load\.d|sysctl\.d|initramfs-tools|dracut\.conf\.d|kernel)'
refuse "the debs contain drivers, firmware, or configuration of the boot" grep -E " \./($system)/" "$work/content-of-debs"

# One build serves later releases of Debian, too (scripts/release): it needs no library that changes its name between them.
needed() {
    dpkg-deb --fsys-tarfile "$1" | tar --extract --to-stdout --file - ".$2" >"$work/program"
    readelf --dynamic "$work/program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}
for program in vfpass:/usr/sbin/vfpass vfpass-guest:/usr/libexec/vfpass/vfpass-probe; do
    needed "$results/${program%%:*}"_*.deb "${program#*:}" >"$work/needed"
    expect "${program#*:} is linked to libc" grep -qx 'libc\.so\.6' "$work/needed"
    refuse "${program#*:} is linked to libc and libstdc++ only" grep -vxE '(libc|libm|libstdc\+\+|libgcc_s|ld-linux.*)\.so\.[0-9]+' "$work/needed"
done

content_of_rpm() { rpm -qlp "$results"/"$1"-[0-9]*.rpm 2>/dev/null; }
dpkg-deb --contents "$results"/vfpass_*.deb >"$work/vfpass.deb-content"
pages=(man8/vfpass-qemu-hook.8)
for source in "$checkout"/docs/manual/*.md; do
    page=$(basename "$source" .md)
    pages+=("man${page##*.}/$page")
done
for page in "${pages[@]}"; do
    expect "the deb contains $page" grep -qF " ./usr/share/man/$page.gz" "$work/vfpass.deb-content"
done

check_rpms() {
    local file page directory collection
    content_of_rpm vfpass >"$work/vfpass.rpm-content"
    for file in /usr/sbin/vfpass /usr/sbin/vfpass-qemu-hook /usr/lib/systemd/system/vfpass-host.service /usr/lib/systemd/catalog/vfpass.catalog \
        /usr/share/bash-completion/completions/vfpass \
        /usr/share/fish/vendor_completions.d/vfpass.fish /usr/share/zsh/site-functions/_vfpass /usr/share/vfpass/removed-hook \
        /usr/lib/systemd/system/vfpass-verify@.service /usr/lib/systemd/network/05-vfpass-vf.network \
        /usr/share/vfpass/network/95-vfpass-vf.rules; do
        expect "the rpm contains $file" grep -qx "$file" "$work/vfpass.rpm-content"
    done
    for page in "${pages[@]}"; do
        expect "the rpm contains $page" grep -qx "/usr/share/man/$page.gz" "$work/vfpass.rpm-content"
    done
    for directory in /usr/sbin /usr/lib/systemd/system /usr/lib/systemd/network /usr/share/man /usr/share/man/man1 /usr/share/man/man8 /etc/libvirt; do
        refuse "the rpm does not own $directory" grep -qx "$directory" "$work/vfpass.rpm-content"
    done
    content_of_rpm vfpass-guest >"$work/content"
    expect "the guest rpm contains the probe" grep -qx /usr/libexec/vfpass/vfpass-probe "$work/content"
    content_of_rpm vfpass-doc >"$work/content"
    expect "the documentation's rpm contains it" grep -qx /usr/share/doc/vfpass/docs/packages.md "$work/content"
    collection=/usr/share/ansible/collections/ansible_collections/vfpass/vfpass
    expect "the documentation's rpm contains the Ansible collection" grep -qx "$collection/galaxy.yml" "$work/content"
}
[ "$release" != "$(own_release)" ] || check_rpms

# make_repository NAME DIRECTORY...: one repository with the packages of all directories.
make_repository() {
    local name=$1 each
    shift
    for each in "$@"; do "$checkout/scripts/repository" --codename "$release" "$each" "$work/$name" >/dev/null || fail "$name"; done
}

echo "installing in a new $release"
mkdir "$work/debs" && cp "${debs[@]}" "$work/debs/"
newer "$results"/vfpass_*.deb "$work/newer-debs"
make_repository repository "$work/debs"
make_repository upgraded "$work/debs" "$work/newer-debs"
# apt reads the key as the user _apt.
chmod 755 "$work"/{repository,upgraded}
source="deb [signed-by=/opt/repository/vfpass.asc] file:/opt/repository/apt $release main"
# shellcheck disable=SC2016  # mmdebstrap runs the hooks in a shell of its own
debian_tar "$release" systemd --customize-hook="copy-in $work/debs $work/repository $work/upgraded /opt" \
    --customize-hook="echo '$source' >\"\$1/etc/apt/sources.list.d/vfpass.list\"" \
    --customize-hook='chroot "$1" sh -c "apt-get update -qq && apt-get install -qq --no-install-recommends vfpass vfpass-guest vfpass-doc" >"'"$work"'/apt.log" 2>&1' \
    >"$work/root.tar" || { cat "$work/apt.log" >&2; exit 1; }
unpack_root "$work/root" <"$work/root.tar"
root=$work/root
link=$root/etc/libvirt/hooks/qemu.d/vfpass
metadata="<domain><metadata><vfpass xmlns='https://vfpass.org/xmlns/domain/1'/></metadata></domain>"
# shellcheck disable=SC2317  # called by refuse
start() { in_root sh -c "echo \"$metadata\" | /etc/libvirt/hooks/qemu.d/vfpass train0 prepare begin -"; }
# shellcheck disable=SC2317  # called by expect
reinstall() { in_root sh -c 'dpkg --install /opt/debs/vfpass_*.deb'; }

expect "the hook is installed" test "$(readlink "$link")" = /usr/sbin/vfpass-qemu-hook
expect "the group exists" grep -q '^vfpass:' "$root/etc/group"
expect "the state belongs to it" test "$(in_root stat -c '%U:%G %a' /var/lib/vfpass)" = "root:vfpass 2750"
expect "systemd has the unit of one VM" test -e "$root/usr/lib/systemd/system/vfpass-verify@.service"
expect "the file of systemd-networkd is in place" test -e "$root/usr/lib/systemd/network/05-vfpass-vf.network"
expect "no udev rule is active" test -z "$(find "$root"/{etc,usr/lib}/udev/rules.d -name '*vfpass*' 2>/dev/null)"
# The activation of docs/network-managers.md.
mkdir -p "$root/etc/udev/rules.d"
expect "the rule can be linked" in_root ln -s /usr/share/vfpass/network/95-vfpass-vf.rules /etc/udev/rules.d/
expect "the link leads to the rule" in_root grep -q VFPASS_VF /etc/udev/rules.d/95-vfpass-vf.rules
expect "no unit is enabled" test -z "$(find "$root/etc/systemd/system" -name 'vfpass*')"
expect "vfpass runs" in_root vfpass --version
# The libraries that vfpass opens at run time: a package that lacks one in its dependencies installs all the same.
expect "it opens libvirt" in_root vfpass --connect test:///default status
"$checkout/tests/hosts/make_host.py" functions-64 "$root/opt/tree" >/dev/null
expect "it opens libpci" in_root vfpass --sysroot /opt/tree pf list
expect "it found libpci" test -z "$(grep 'no model names' "$work/said")"
expect "it opens libarchive" in_root vfpass --sysroot /opt/tree snapshot /opt/snapshot.tar
# shellcheck disable=SC2317  # called by expect
own_apt() { in_root apt-get -qq -o Dir::Etc::SourceList=sources.list.d/vfpass.list -o Dir::Etc::SourceParts=- "$@"; }
expect "apt installed the built version" test "$(installed)" = "$(dpkg-deb --field "$results"/vfpass_*.deb Version)"
in_root sh -c 'rm -r /opt/repository && mv /opt/upgraded /opt/repository'
expect "apt reads the repository with the newer version" own_apt update
expect "an upgrade by apt" own_apt install --only-upgrade vfpass
expect "apt installed the newer version" test "$(installed)" = 9.0-1
expect "the hook is still a link after it" test -h "$link"
expect "the built version again" reinstall
expect "the hook is still a link" test -h "$link"

mkdir -p "$root/etc/libvirt/qemu"
echo "$metadata" >"$root/etc/libvirt/qemu/train0.xml"
expect "removal" in_root dpkg --remove vfpass
said "        train0"
refuse "a managed VM does not start" start
said "install it again"
refuse "purge while a domain has our devices" in_root dpkg --purge vfpass
said "cannot purge"
refuse "it still does not start" start
expect "installing again" reinstall
expect "the hook is a link again" test -h "$link"
expect "removal again" in_root dpkg --remove vfpass
rm "$root/etc/libvirt/qemu/train0.xml"
expect "purge" in_root dpkg --purge vfpass vfpass-guest vfpass-doc
rm "$root/etc/apt/sources.list.d/vfpass.list"
expect "nothing remains" nothing_remains

[ "$failures" = 0 ] && echo passed
exit "$((failures > 0))"
