# Our netlink code with an independent driver: netdevsim, the kernel's own test driver, read by iproute2.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

set_vf() { /vfpass/build/tests/lab/set-vf "$@"; }

section "netdevsim accepts every attribute"
modprobe netdevsim
echo "10 1" >/sys/bus/netdevsim/new_device
simulated=/sys/bus/netdevsim/devices/netdevsim10
wait_until 10 test -d "$simulated/net"
netdev=$(ls "$simulated/net")
echo 4 >"$simulated/sriov_numvfs"
expect "set-vf sets all attributes of VF 2" set_vf "$netdev" 2 02:00:00:00:00:22 123 5 10 1000
expect_contains "MAC" "02:00:00:00:00:22" vf_attributes "$netdev" 2
expect_contains "VLAN and priority" "vlan 123, qos 5" vf_attributes "$netdev" 2
expect_contains "rates" "max_tx_rate 1000Mbps, min_tx_rate 10Mbps" vf_attributes "$netdev" 2
expect_contains "spoof check" "spoof checking on" vf_attributes "$netdev" 2
expect_contains "link state" "link-state enable" vf_attributes "$netdev" 2
expect_contains "trust" "trust on" vf_attributes "$netdev" 2
expect_contains "VF 1 is unchanged" "00:00:00:00:00:00" vf_attributes "$netdev" 1

section "refused attributes are reported and rolled back"
expect_exit 1 "a VF that does not exist" set_vf "$netdev" 9 02:00:00:00:00:33 1 0 0 0
expect_exit 1 "a multicast MAC" set_vf "$netdev" 1 01:00:00:00:00:33 1 0 0 0
expect_said "the error names the attribute" "mac"
expect_contains "VF 1 is unchanged after the refusal" "00:00:00:00:00:00" vf_attributes "$netdev" 1
section "300 VFs can be read without statistics; with 400 the 16-bit length of the list wraps"
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
echo 0 >"$simulated/sriov_numvfs"
echo 400 >/sys/kernel/debug/netdevsim/netdevsim10/max_vfs
for vf in {0..399}; do
    printf '%s 02:00:00:00:%02x:%02x\n' "$vf" $((vf / 256)) $((vf % 256))
done >/tmp/wanted
# with_vfs COUNT: creates VFs, sets their MACs with iproute2, and reads them with our code.
with_vfs() {
    echo 0 >"$simulated/sriov_numvfs"
    echo "$1" >"$simulated/sriov_numvfs"
    sed -n "1,$1s/ / mac /p" /tmp/wanted | sed "s/^/link set dev $netdev vf /" >/tmp/batch
    ip -batch /tmp/batch || return
    /vfpass/build/tests/lab/read-vfs "$netdev" "$1" >/tmp/found
}
expect "300 VFs are created and read" with_vfs 300
expect_equal "all 300 VFs have a MAC" 300 "$(grep -cxFf /tmp/wanted /tmp/found)"
expect "400 VFs are created and read" with_vfs 400
readable=$(grep -vc unreadable /tmp/found) unreadable=$(grep -c unreadable /tmp/found)
expect "some VFs are readable ($readable) and some are not ($unreadable)" \
    test "$readable" -gt 0 -a "$unreadable" -gt 0
expect_equal "every VF is reported" 400 "$((readable + unreadable))"
expect_equal "no VF is reported with a wrong MAC" "" \
    "$(grep -v unreadable /tmp/found | grep -vxFf /tmp/wanted)"
last=$(grep unreadable /tmp/found | tail -n 1 | cut -d ' ' -f 1)
expect_exit 1 "a VF that cannot be read does not count as set" set_vf "$netdev" "$last" 02:00:00:00:00:44 44 0 0 0
expect_said "the error says why" "accepted, but the driver does not report it"
echo 0 >"$simulated/sriov_numvfs"
finish
