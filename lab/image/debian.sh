# shellcheck shell=bash
# Sourced by the scripts that use Debian packages: makes roots and downloads packages of any release from
# this machine's mirrors.

# own_release: this machine's release, such as "bookworm". Programs built here run only in a root of that release.
own_release() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

# build_of RELEASE: the directory in the checkout where programs for that release are built.
build_of() { if [ "$1" = "$(own_release)" ]; then echo build; else echo "build-$1"; fi; }

# sources_of RELEASE: lines for sources.list: this machine's Debian sources with the release replaced, so that
# its configured mirror is used.
sources_of() {
    # shellcheck disable=SC2016  # apt fills these in
    apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' |
        awk -v own="$(own_release)" -v wanted="$1" '
            $1 == "Debian" && index($2, own) == 1 { sub(own, wanted, $4); print "deb", $3, $4, $5 }' |
        sort -u
}

# own_options: options of mmdebstrap that make apt in a new root reach the mirror as this machine's does. A mirror that keeps an earlier
# state of testing serves an index that has expired, which this machine may permit.
own_options() {
    local scheme proxy valid
    valid=$(apt-config dump --format '%v' Acquire::Check-Valid-Until)
    [ -z "$valid" ] || echo "--aptopt=Acquire::Check-Valid-Until \"$valid\""
    for scheme in http https; do
        proxy=$(apt-config dump --format '%v' "Acquire::$scheme::Proxy")
        [ -z "$proxy" ] || echo "--aptopt=Acquire::$scheme::Proxy \"$proxy\""
    done
}

# listed FILE...: converts lists of packages, one per line with comments, to mmdebstrap's format.
listed() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@" | paste -sd,; }

# debian_tar RELEASE PACKAGES [MMDEBSTRAP OPTION...]: writes a root to stdout as a tar. Documentation and
# translations are excluded: they would be a third of its size.
debian_tar() {
    local release=$1 packages=$2 options
    shift 2
    mapfile -t options < <(own_options)
    sources_of "$release" |
        mmdebstrap --quiet --mode=auto --variant=minbase --format=tar "${options[@]}" \
            --include="$packages" \
            --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
            --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
            "$@" "$release" - -
}

# unpack_root DIRECTORY: unpacks a root from stdin. An ordinary user cannot set the owners, so all files
# belong to that user, which does not matter to root in the host under test.
unpack_root() {
    local ownership=--same-owner
    [ "$(id -u)" = 0 ] || ownership=--no-same-owner
    rm -rf "$1.new"
    mkdir -p "$1.new"
    tar -x -C "$1.new" "$ownership" --exclude='./dev/*'
    rm -rf "$1"
    mv "$1.new" "$1"
}

# use_release RELEASE DIRECTORY: makes apt-get and apt-cache use RELEASE, with their state in DIRECTORY. Does
# nothing for this machine's own release.
use_release() { [ "$1" = "$(own_release)" ] || with_sources "$1" "$2"; }

# with_sources RELEASE DIRECTORY: same as use_release, but for any release and with its source packages.
with_sources() {
    local directory
    mkdir -p "$2"/{state/lists/partial,cache/archives/partial}
    directory=$(realpath "$2")
    sources_of "$1" | sed 'p; s/^deb /deb-src /' >"$directory/sources.list"
    : >"$directory/status"
    cat >"$directory/apt.conf" <<CONF
Dir::State "$directory/state";
Dir::State::status "$directory/status";
Dir::Cache "$directory/cache";
Dir::Etc::SourceList "$directory/sources.list";
Dir::Etc::SourceParts "/dev/null";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
CONF
    export APT_CONFIG=$directory/apt.conf
    apt-get -qq update
}
