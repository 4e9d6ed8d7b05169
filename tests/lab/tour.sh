# README's tour, word for word, on a host with vfpass installed from the packages. The arguments are "deb" (the default; made by
# `lab/prepare --packages deb`) or "build" (the programs in build/, for scripts/demo), and optionally "regenerate":
#     lab/run --state DIRECTORY tests/lab/tour.sh deb regenerate
# writes DIRECTORY/README.md, which shows the real output.
# covers: README.md scripts/tour examples/train0-pci.yaml packaging src/commands src/report
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../scripts/tour
source /vfpass/scripts/tour

installed_from=${1:-deb} regenerate=${2:-}
new=/dev/null
if [ "$regenerate" = regenerate ]; then
    new=/lab/state/README.md
    require "lab/run has --state DIRECTORY" test -d /lab/state
fi

install_from() {
    case $1 in
    deb) dpkg --install "$lab_build"/packages/vfpass_*.deb "$lab_build"/packages/vfpass-guest_*.deb ;;
    build) install_vfpass && vfpass hook install ;;
    *) echo "unknown: $1" >&2; return 2 ;;
    esac
}

# What the tour shows of the example: its lines without comments.
write_mapping() { sed 's/ *#.*//; /^$/d' /vfpass/examples/train0-pci.yaml >"$vms/train0.yaml"; }

# The tour calls these where README says that something takes a while: wait_for_agent (lab/lib/agent.sh) and
wait_for_release() { wait_until 90 guest_off "$1" && wait_until 30 has_lease reserved; }

section "the host of the tour"
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
expect_equal "the PF is README's" "0000:01:00.0 eth0" "$pf $netdev"
# attach warns about a PF without carrier.
expect "the PF is up" ip link set dev "$netdev" up
make_vfs "$pf" 2
expect "a MAC and a VLAN set by hand" ip link set dev "$netdev" vf 0 mac 02:aa:00:00:00:02 vlan 77
# Not within a check, which would wait for the end of the daemons, which keep its pipe open.
start_libvirt
require "libvirtd starts" virsh list
require "vfpass is installed ($installed_from)" install_from "$installed_from"
# The UUID determines the automatic MAC.
require "the domain is defined" define_guest train0 --uuid 5d1a7c1e-9a0b-4c53-8f6e-2b7c1f0a9d34
expect "its XML is in libvirt's order" settle train0
expect "it has a mapping" write_mapping
virsh dumpxml --inactive --security-info train0 >/tmp/xml.before
snapshot_host /tmp/host.before "$pf"

section "README's tour"
run_tour /vfpass/README.md "$new" 2>&1
expect_equal "every line is as README shows it" "0 problems" "$tour_problems problems"
expect "README has several commands" test "$tour_commands" -gt 8

section "restored"
virsh dumpxml --inactive --security-info train0 >/tmp/xml.after
snapshot_host /tmp/host.after "$pf"
expect_same_file "the domain's XML, VNC password included" /tmp/xml.before /tmp/xml.after
expect_same_file "driver, override, attributes, autoprobe and VF count" /tmp/host.before /tmp/host.after
finish
