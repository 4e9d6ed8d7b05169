# A second opinion on our netlink code: netdevsim, the kernel's own test driver, read by iproute2.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

set_vf() { /vfpass/build/tests/lab/set-vf "$@"; }

section "netdevsim takes every attribute"
modprobe netdevsim
echo "10 1" >/sys/bus/netdevsim/new_device
simulated=/sys/bus/netdevsim/devices/netdevsim10
wait_until 10 test -d "$simulated/net"
netdev=$(ls "$simulated/net")
echo 4 >"$simulated/sriov_numvfs"
expect "all attributes of VF 2" set_vf "$netdev" 2 02:00:00:00:00:22 123 5 10 1000
expect_contains "MAC" "02:00:00:00:00:22" vf_attributes "$netdev" 2
expect_contains "VLAN and priority" "vlan 123, qos 5" vf_attributes "$netdev" 2
expect_contains "rates" "max_tx_rate 1000Mbps, min_tx_rate 10Mbps" vf_attributes "$netdev" 2
expect_contains "spoof check" "spoof checking on" vf_attributes "$netdev" 2
expect_contains "link state" "link-state enable" vf_attributes "$netdev" 2
expect_contains "trust" "trust on" vf_attributes "$netdev" 2
expect_contains "VF 1 is untouched" "00:00:00:00:00:00" vf_attributes "$netdev" 1

section "what it refuses is named, and undone"
expect_exit 1 "a VF that does not exist" set_vf "$netdev" 9 02:00:00:00:00:33 1 0 0 0
expect_exit 1 "a multicast MAC" set_vf "$netdev" 1 01:00:00:00:00:33 1 0 0 0
expect_said "the attribute is named" "mac"
expect_contains "nothing of it stays" "00:00:00:00:00:00" vf_attributes "$netdev" 1
finish
