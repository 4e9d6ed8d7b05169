# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by lab/run: parses the command line into the variables that lab/run declares.

read_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
        --help) usage; exit 0 ;;
        --*) [ $# -gt 1 ] || fail "$1 needs a value"; read_option "$1" "$2"; shift 2 ;;
        *) break ;;
        esac
    done
    [ $# -gt 0 ] || { usage >&2; exit 2; }
    script=$(realpath -e -- "$1") || fail "no such script: $1"
    shift
    script_arguments=("$@")
    check_arguments
}

read_option() {
    case $1 in
    --architecture) architecture=$2 ;;
    --release) release=$2 ;;
    --daemons) daemons=$2 ;;
    --machine) machine=$2 ;;
    --memory) memory=$2 ;;
    --timeout) timeout=$2 ;;
    --cores) cores=$2 ;;
    --state) mkdir -p "$2"; state=$(realpath "$2") ;;
    --share) shares+=("$2") ;;
    --hosts) hosts=$2; link=${VFPASS_LAB_LINK:-} ;;
    --build) build=$2 ;;
    --keep) mkdir -p "$2"; keep=$(realpath "$2") ;;
    *) fail "unknown option $1" ;;
    esac
}

check_arguments() {
    [ -f "$lab/machines/$machine" ] || fail "unknown machine $machine, use one of: $(ls "$lab/machines")"
    [[ $memory =~ ^[0-9]+$ && $timeout =~ ^[0-9]+$ ]] || fail "--memory and --timeout need a number"
    [[ $cores = one || $cores = all ]] || fail "--cores needs one or all"
    [[ $hosts =~ ^[123]$ ]] || fail "--hosts needs 1, 2 or 3"
    [ "$hosts" = 2 ] || ! grep -q @LINK@ "$lab/machines/$machine" || fail "machine $machine needs --hosts 2"
    read_architecture
    [ -n "$build" ] || build=$checkout/$programs/lab
    [[ -e $build/guest.cpio && -e $build/connectx/connectx.so && -e $build/tsc_khz ]] ||
        fail "$build: no lab: run lab/prepare$option${release:+ --release $release} first"
    build=$(realpath "$build")
    case $daemons in
    monolithic) ;;
    modular) [ -e "$build/modular/virtqemud" ] || fail "run lab/prepare --daemons modular first" ;;
    *) fail "unknown daemons $daemons, use one of: monolithic modular" ;;
    esac
    # Mount that build where every script expects it.
    [ "$programs" = build ] ||
        share_build
}

# read_architecture: sets programs to the directory in the checkout where the programs of the host under test are built.
read_architecture() {
    [ -e "$lab/architectures/$architecture.sh" ] || fail "unknown architecture $architecture, use one of: amd64 arm64"
    # shellcheck source=SCRIPTDIR/../architectures/amd64.sh
    source "$lab/architectures/$architecture.sh"
    programs=$(build_directory "${release:-$(own_release)}")
    [ "$architecture" != amd64 ] || return 0
    [ -z "$release" ] || [ "$release" = "$(own_release)" ] || fail "--architecture $architecture has only this machine's release"
    option=" --architecture $architecture"
}

# Creates the mount point in the checkout here, because the host under test mounts the checkout read-only.
share_build() {
    mkdir -p "$checkout/build"
    shares+=("$checkout/$programs:/vfpass/build")
}
