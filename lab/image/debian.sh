# shellcheck shell=bash
# Sourced by the scripts that make things from Debian's packages: roots and downloads of any release,
# through this machine's own mirrors.

# own_release: this machine's, such as "bookworm". What is built here runs in a root of that release only.
own_release() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

# build_of RELEASE: the folder in the checkout where programs for it are built.
build_of() { if [ "$1" = "$(own_release)" ]; then echo build; else echo "build-$1"; fi; }

# sources_of RELEASE: lines for sources.list. This machine's own Debian sources with the release's name in
# place of its own, so that a mirror set up there serves here as well.
sources_of() {
    # shellcheck disable=SC2016  # apt fills these in
    apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' |
        awk -v own="$(own_release)" -v wanted="$1" '
            $1 == "Debian" && index($2, own) == 1 { sub(own, wanted, $4); print "deb", $3, $4, $5 }' |
        sort -u
}

proxy_options() {
    local scheme proxy
    for scheme in http https; do
        proxy=$(apt-config dump --format '%v' "Acquire::$scheme::Proxy")
        [ -z "$proxy" ] || echo "--aptopt=Acquire::$scheme::Proxy \"$proxy\""
    done
}

# listed FILE: a file of packages, one a line with comments, as mmdebstrap wants it.
listed() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@" | paste -sd,; }

# debian_tar RELEASE PACKAGES [MMDEBSTRAP OPTION...]: a root on stdout, as a tar. Documentation and
# translations would be a third of the size and nobody reads them there.
debian_tar() {
    local release=$1 packages=$2 options
    shift 2
    mapfile -t options < <(proxy_options)
    sources_of "$release" |
        mmdebstrap --quiet --mode=auto --variant=minbase --format=tar "${options[@]}" \
            --include="$packages" \
            --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
            --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
            "$@" "$release" - -
}

# unpack_root DIRECTORY: a root from stdin. An ordinary user cannot give files away: there everything
# belongs to that user, and the host under test, whose root may do all, does not mind.
unpack_root() {
    local ownership=--same-owner
    [ "$(id -u)" = 0 ] || ownership=--no-same-owner
    rm -rf "$1.new"
    mkdir -p "$1.new"
    tar -x -C "$1.new" "$ownership" --exclude='./dev/*'
    rm -rf "$1"
    mv "$1.new" "$1"
}

# use_release RELEASE FOLDER: from here on apt-get and apt-cache are about RELEASE; their state is in
# FOLDER. This machine's own release needs none.
use_release() { [ "$1" = "$(own_release)" ] || with_sources "$1" "$2"; }

# with_sources RELEASE FOLDER: as use_release, for any release, with its source packages.
with_sources() {
    local folder
    mkdir -p "$2"/{state/lists/partial,cache/archives/partial}
    folder=$(realpath "$2")
    sources_of "$1" | sed 'p; s/^deb /deb-src /' >"$folder/sources.list"
    : >"$folder/status"
    cat >"$folder/apt.conf" <<CONF
Dir::State "$folder/state";
Dir::State::status "$folder/status";
Dir::Cache "$folder/cache";
Dir::Etc::SourceList "$folder/sources.list";
Dir::Etc::SourceParts "/dev/null";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
CONF
    export APT_CONFIG=$folder/apt.conf
    apt-get -qq update
}
