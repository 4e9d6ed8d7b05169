# Sourced by the tests that install the packages in a new Debian.
# shellcheck shell=bash
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=SCRIPTDIR/../../lab/image/debian.sh
source "$checkout/lab/image/debian.sh"
failures=0
# Set by the test: a directory for its files, and the root in which commands run.
work='' root=''

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# expect TEXT COMMAND...: the command succeeds.
expect() {
    local text=$1
    shift
    "$@" >"$work/said" 2>&1 || { fail "$text"; cat "$work/said" >&2; }
}

# refuse TEXT COMMAND...: the command fails.
refuse() {
    local text=$1
    shift
    if "$@" >"$work/said" 2>&1; then fail "$text"; cat "$work/said" >&2; fi
}

said() { grep -qF "$1" "$work/said" || { fail "no \"$1\" in:"; cat "$work/said" >&2; }; }

# newer DEB DIRECTORY: makes the package with the version 9.0-1 in DIRECTORY, from the original.
newer() {
    dpkg-deb --raw-extract "$1" "$work/newer"
    sed -i 's/^Version: .*/Version: 9.0-1/; s/vfpass-guest (= [^)]*)/vfpass-guest/' "$work/newer/DEBIAN/control"
    mkdir -p "$2"
    dpkg-deb --root-owner-group -Znone --build "$work/newer" "$2" >/dev/null
    rm -r "$work/newer"
}

# in_root COMMAND...: in $root, with /dev/null, which apt's methods need, and which unpack_root leaves out.
# shellcheck disable=SC2016  # sh expands it
in_root() {
    touch "$root/dev/null"
    unshare --mount --pid --fork sh -c 'mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" && root=$1 && shift && chroot "$root" "$@"' \
        sh "$root" "$@"
}

# installed: the version of the package vfpass in $root.
# shellcheck disable=SC2016  # dpkg-query expands it
installed() { in_root dpkg-query --show --showformat '${Version}' vfpass; }

# nothing_remains: prints the files of $root that the packages should have taken with them.
nothing_remains() {
    local found
    found=$(find "$root/etc" "$root/usr" "$root/var/lib/vfpass" -name '*vfpass*' 2>/dev/null || true)
    echo "$found"
    [ -z "$found" ]
}
