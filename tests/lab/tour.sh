# README's tour, word for word, on a host with vfpass installed from the packages. The arguments are those of tour_common.sh;
# scripts/demo gives "build".
# covers: README.md scripts/tour tests/lab/tour_common.sh examples/train0-pci.yaml packaging src/commands src/report
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/tour_common.sh
source /vfpass/tests/lab/tour_common.sh

# What the tour shows of the example: its lines without comments.
write_mapping() { sed 's/ *#.*//; /^$/d' /vfpass/examples/train0-pci.yaml >"$vms/train0.yaml"; }

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
require "vfpass is installed" install_programs
# The UUID determines the automatic MAC.
require "the domain is defined" define_guest train0 --uuid 5d1a7c1e-9a0b-4c53-8f6e-2b7c1f0a9d34
expect "its XML is in libvirt's order" settle train0
expect "it has a mapping" write_mapping
remember_host "$pf"

section "README's tour"
run_page README.md

section "restored"
compare_host "$pf"
finish
