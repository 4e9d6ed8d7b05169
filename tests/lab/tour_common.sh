# Sourced by the tests of tours, after common.sh: the pages that show commands with their output. A test's arguments are "deb" (programs
# from the packages, made by `lab/prepare --packages deb`) or "build" (those in build/), and optionally "regenerate":
#     lab/run --state DIRECTORY tests/lab/tour.sh deb regenerate
# writes a copy of the page into DIRECTORY, which shows the real output.
# shellcheck shell=bash disable=SC2154
# shellcheck source=SCRIPTDIR/../../scripts/tour
source /vfpass/scripts/tour

programs=${1:-deb} regenerate=${2:-}
[ "$regenerate" != regenerate ] || require "lab/run has --state DIRECTORY" test -d /lab/state

install_programs() {
    case $programs in
    deb) dpkg --install "$lab_build"/packages/vfpass_*.deb "$lab_build"/packages/vfpass-guest_*.deb ;;
    build) install_vfpass && vfpass hook install ;;
    *) echo "unknown: $programs" >&2; return 2 ;;
    esac
}

# Pages call this and wait_for_agent (lab/lib/agent.sh) where something takes a while.
wait_for_release() { wait_until 90 guest_off "$1" && wait_until 30 has_lease reserved; }

# remember_host PF: what the tour has to restore.
remember_host() {
    virsh dumpxml --inactive --security-info train0 >/tmp/xml.before
    snapshot_host /tmp/host.before "$1"
}

# compare_host PF
compare_host() {
    virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
    snapshot_host /tmp/host.after "$1"
    expect_same_file "the domain's XML, VNC password included" /tmp/xml.before /tmp/xml.after
    expect_same_file "driver, override, attributes, autoprobe and VF count" /tmp/host.before /tmp/host.after
}

# run_page PAGE: the tour of a page of the checkout, such as docs/gpu-tour.md.
run_page() {
    local new=/dev/null
    [ "$regenerate" != regenerate ] || new=/lab/state/$(basename "$1")
    run_tour "/vfpass/$1" "$new" 2>&1
    expect_equal "every line is as $1 shows it" "0 problems" "$tour_problems problems"
    expect "$1 has several commands" test "$tour_commands" -gt 8
}
