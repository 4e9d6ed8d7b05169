#!/bin/bash
# apt_test.sh [--release NAME] [DIRECTORY]: `apt install vfpass` as docs/packages.md says, in a new Debian 12, 13 and testing (or NAME), from
# a signed repository that a web server on this machine serves; what apt refuses: another key, a changed index, a changed package; an
# upgrade from the same repository, removal and purge. The debs are those of DIRECTORY/RELEASE, or else of DIRECTORY: those built on the
# oldest release, as scripts/release publishes them. Without DIRECTORY they are built from HEAD. Needs root and Debian's mirror.
set -euo pipefail

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
releases=(bookworm trixie forky)
if [ "${1:-}" = --release ]; then
    [ $# -ge 2 ] || { echo "--release needs a name" >&2; exit 2; }
    releases=("$2")
    shift 2
fi
work=$(mktemp -d)
# A web server reads it, and in the roots apt does as the user _apt.
chmod 755 "$work"
export GNUPGHOME=$work/keyring VFPASS_SIGNING_KEY=right
# shellcheck disable=SC2317  # called by the trap
end() {
    [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
    gpgconf --kill gpg-agent
    rm -rf "$work"
}
trap end EXIT

make_keys() {
    local each
    mkdir -m 700 "$GNUPGHOME"
    for each in right wrong; do
        gpg --batch --quiet --passphrase '' --quick-generate-key "$each key" rsa3072 sign never 2>/dev/null
        gpg --batch --armor --export "$each" >"$work/$each.asc"
    done
}

# serve: the directory that the roots know as packages.example.org.
serve() {
    local line
    mkdir "$work/served"
    exec 3< <(exec python3 -u -m http.server --bind 127.0.0.1 --directory "$work/served" 0 2>"$work/server.log")
    server=$!
    read -r -t 30 line <&3 || { cat "$work/server.log" >&2; exit 1; }
    line=${line#* port }
    url=http://127.0.0.1:${line%% *}
}

# publish RELEASE DIRECTORY
publish() { "$checkout/scripts/repository" --codename "$1" "$2" "$work/served" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }; }

# debs_of RELEASE
debs_of() { if [ -d "$debs/$1" ]; then echo "$debs/$1"; else echo "$debs"; fi; }

# documented: the commands of docs/packages.md for each host, with the address of this server.
documented() {
    sed -n '/^On each host, as root/,/^apt refuses/s/^    //p' "$checkout/docs/packages.md" | sed "s,https://packages.example.org,$url,"
}

# make_root RELEASE: what the documented commands need and a minimal Debian lacks is `wget`.
make_root() {
    root=$work/root
    debian_tar "$1" systemd,wget | unpack_root "$root"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    printf '%s\n' 'APT::Get::Assume-Yes "true";' 'APT::Install-Recommends "false";' 'APT::Color "false";' \
        'APT::Get::List-Cleanup "false";' 'Acquire::Languages "none";' 'Acquire::http::Proxy::127.0.0.1 "DIRECT";' >"$root/etc/apt/apt.conf.d/90test"
}

in_new_shell() { in_root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -euc "$1"; }
# strict_update: an update that fails for a repository that apt refuses, of which it only warns otherwise.
# shellcheck disable=SC2317  # called by expect
strict_update() {
    in_new_shell 'apt-get -o APT::Update::Error-Mode=any -o Dir::Etc::SourceList=sources.list.d/vfpass.list -o Dir::Etc::SourceParts=- update'
}
# changed RELEASE: the repository with indexes that promise another version.
changed() {
    local index=$work/served/apt/dists/$1/main/binary-amd64/Packages
    cp -a "$work/served/apt" "$work/unchanged"
    sed -i 's/^Version: ./Version: 9/' "$index"
    xz --keep --force --threads=1 "$index"
}
unchanged() { rm -r "$work/served/apt" && mv "$work/unchanged" "$work/served/apt"; }

refusals() {
    local release=$1 deb
    expect "$release: the documented commands before \`apt update\`" in_new_shell "$commands_before_update"
    expect "$release: Debian's lists" in_new_shell 'mv /etc/apt/sources.list.d/vfpass.list /opt; apt-get update; mv /opt/vfpass.list /etc/apt/sources.list.d/'
    cp "$work/wrong.asc" "$root/etc/apt/keyrings/vfpass.asc"
    refuse "$release: an unknown key is refused" strict_update
    said "is not signed"
    refuse "$release: nothing is installed from it" in_new_shell 'apt-get install vfpass'
    said "Unable to locate package vfpass"
    cp "$work/right.asc" "$root/etc/apt/keyrings/vfpass.asc"
    changed "$release"
    refuse "$release: a changed index is refused" strict_update
    refuse "$release: nothing is installed by it" in_new_shell 'apt-get install vfpass'
    said "Unable to locate package vfpass"
    unchanged
    expect "$release: apt accepts the repository" strict_update
    deb=$(echo "$work/served/apt/pool/$release"/vfpass_*.deb)
    cp "$deb" "$work/kept.deb"
    printf 'x' | dd of="$deb" bs=1 seek=$(($(stat -c %s "$deb") / 2)) conv=notrunc status=none
    refuse "$release: a changed package is refused" in_new_shell 'apt-get install vfpass'
    said "Hash Sum mismatch"
    mv "$work/kept.deb" "$deb"
    refuse "$release: nothing is installed" installed
    in_new_shell 'rm -f /etc/apt/sources.list.d/vfpass.list /etc/apt/keyrings/vfpass.asc'
}

installation() {
    local release=$1 version
    version=$(dpkg-deb --field "$(debs_of "$release")"/vfpass_*.deb Version)
    expect "$release: the documented commands" in_new_shell "$(documented)"
    expect "$release: the built version is installed" test "$(installed)" = "$version"
    expect "$release: vfpass version" in_root vfpass version
    said "vfpass ${version%%[~-]*}"
    expect "$release: vfpass doctor --help" in_root vfpass doctor --help
    said "Usage: vfpass doctor"
    # The libraries that vfpass opens at run time, of this release.
    expect "$release: it opens libvirt" in_root vfpass --connect test:///default status
    "$checkout/tests/hosts/make_host.py" functions-64 "$root/opt/tree" >/dev/null
    expect "$release: it opens libpci" in_root vfpass --sysroot /opt/tree pf list
    expect "$release: it found libpci" test -z "$(grep 'no model names' "$work/said")"
    expect "$release: it opens libarchive" in_root vfpass --sysroot /opt/tree snapshot /opt/snapshot.tar
    expect "$release: the probe's libraries exist" in_root /usr/libexec/vfpass/vfpass-probe --help
    expect "$release: the hook is installed" test "$(readlink "$root/etc/libvirt/hooks/qemu.d/vfpass")" = /usr/sbin/vfpass-qemu-hook
    expect "$release: the state belongs to the group" test "$(in_root stat -c '%U:%G %a' /var/lib/vfpass)" = "root:vfpass 2750"
}

upgrade_and_removal() {
    local release=$1
    newer "$(echo "$(debs_of "$release")"/vfpass_*.deb)" "$work/newer-debs-$release"
    publish "$release" "$work/newer-debs-$release"
    expect "$release: an upgrade" in_new_shell 'apt-get update; apt-get upgrade'
    expect "$release: the newer version is installed" test "$(installed)" = 9.0-1
    expect "$release: the hook is still a link" test -h "$root/etc/libvirt/hooks/qemu.d/vfpass"
    expect "$release: vfpass still runs" in_root vfpass version
    expect "$release: removal" in_new_shell 'apt-get remove vfpass'
    refuse "$release: the program is gone" test -e "$root/usr/sbin/vfpass"
    expect "$release: purge" in_new_shell 'apt-get purge vfpass vfpass-guest'
    rm "$root/etc/apt/sources.list.d/vfpass.list" "$root/etc/apt/keyrings/vfpass.asc"
    expect "$release: nothing remains" nothing_remains
}

if [ $# -gt 0 ]; then
    debs=$(realpath "$1")
else
    debs=$work/debs
    VFPASS_SIGNING_KEY='' "$checkout/scripts/release" --only deb --output "$debs"
fi
make_keys
serve
commands_before_update=$(documented | sed '/^apt /d')
[ "$(documented | grep -c '^apt ')" = 2 ] || fail "docs/packages.md: expected \`apt update\` and \`apt install\`"
for release in "${releases[@]}"; do
    echo "installing in a new $release"
    publish "$release" "$(debs_of "$release")"
    make_root "$release"
    refusals "$release"
    installation "$release"
    upgrade_and_removal "$release"
done
[ "$failures" = 0 ] && echo passed
exit "$((failures > 0))"
