# The udev rule and the networkd file of packaging/network on SR-IOV devices: from the kernel's event for a new VF to what
# udev, systemd-networkd and NetworkManager make of its netdev.
# covers: packaging/network docs/network-managers.md src/doctor/competing_managers_checks.cpp
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

snippets=/usr/local/share/vfpass/network
rule=/etc/udev/rules.d/95-vfpass-vf.rules
exceptions=/etc/udev/rules.d/50-host-vfs.rules

install_snippets() {
    mkdir -p "$snippets" /etc/udev/rules.d
    install -m 644 /vfpass/packaging/network/95-vfpass-vf.rules "$snippets/"
    install -m 644 /vfpass/packaging/network/05-vfpass-vf.network /usr/lib/systemd/network/
}

# documented TEXT: prints the line of docs/network-managers.md that contains TEXT, for this PF or VF and directory.
documented() {
    grep -F -m 1 "    $1" /vfpass/docs/network-managers.md |
        sed "s/^ *//; s/ens1f0np0/$netdev/; s/0000:3b:00.2/$vf/; s|/usr/share/vfpass/network|$snippets|"
}

start_udev() {
    /usr/lib/systemd/systemd-udevd --daemon && udevadm control --ping && udevadm trigger --action=add && udevadm settle
}

# new_vfs: removes the VFs and creates two; returns when their netdevs have their final names.
new_vfs() {
    make_vfs "$pf" 0 && make_vfs "$pf" 2 && wait_until 60 have_netdevs && udevadm settle
}
have_netdevs() { test -n "$(netdev_of "$(vf_of "$pf" 0)")" && test -n "$(netdev_of "$(vf_of "$pf" 1)")"; }

vf_netdev() { netdev_of "$(vf_of "$pf" "$1")"; }

# marks NETDEV: what the rule may set.
marks() {
    udevadm info --query=property "/sys/class/net/$1" | grep -E '^(VFPASS_VF|NM_UNMANAGED)=' | sort | tr '\n' ' '
}
marked='NM_UNMANAGED=1 VFPASS_VF=1 '

addresses() { ip -o -4 address show dev "$1" | wc -l; }
is_up() { [[ $(ip -o link show dev "$1") == *[\<,]UP[,\>]* ]]; }

start_networkd() {
    /lib/systemd/systemd-networkd >>/tmp/networkd.log 2>&1 &
    networkd=$!
}
stop_networkd() { kill "$networkd" && wait "$networkd"; }

# networkd_state NETDEV
networkd_state() { sed -n 's/^ADMIN_STATE=//p' "/run/systemd/netif/links/$(cat "/sys/class/net/$1/ifindex")"; }
manager_state() { nmcli -t -f DEVICE,STATE device | sed -n "s/^$1://p"; }
manages() { [[ $(manager_state "$1") == connected* ]]; }
has_state() { test "$("$1" "$2")" = "$3"; }

# left_alone STATE_FUNCTION NETDEV
left_alone() {
    expect "$2 becomes unmanaged" wait_until 40 has_state "$1" "$2" unmanaged
    expect_equal "$2 has no address" 0 "$(addresses "$2")"
    refuse "$2 is down" is_up "$2"
}
# configured STATE_FUNCTION NETDEV STATE
configured() {
    expect "$2 becomes $3" wait_until 40 has_state "$1" "$2" "$3"
    expect_equal "$2 has an address" 1 "$(addresses "$2")"
    expect "$2 is up" is_up "$2"
}

section "a host with udev and systemd-networkd, which configures every netdev"
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0)
require "udev starts" start_udev
netdev=$(netdev_of "$pf")
install_snippets
mkdir -p /run/systemd/network
# Without IPv6: systemd-networkd would wait for a router.
printf '[Match]\nName=e*\n\n[Network]\nAddress=192.0.2.1/24\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n' \
    >/run/systemd/network/80-all.network
start_networkd
configured networkd_state "$netdev" configured
require "two VFs" new_vfs
vf=$(vf_of "$pf" 1)
expect_equal "without the rule udev marks nothing" "" "$(marks "$(vf_netdev 0)")"
configured networkd_state "$(vf_netdev 0)" configured
configured networkd_state "$(vf_netdev 1)" configured

section "the rule, activated as documented"
expect "activation" bash -euc "$(documented 'ln -s')"
expect "the rule is a link" test -L "$rule"
expect_equal "the VFs that exist keep their properties" "" "$(marks "$(vf_netdev 0)")"
expect "the documented event for VFs that exist" bash -euc "$(documented 'udevadm trigger') && udevadm settle"
expect_equal "they are marked" "$marked" "$(marks "$(vf_netdev 0)")"
# As documented: the one of Debian 13 reacts to the event, the one of Debian 12 has to be restarted and removes no address.
if [ "$(udevadm --version | grep -o '^[0-9]*')" -ge 257 ]; then
    expect "systemd-networkd stops managing them" wait_until 40 has_state networkd_state "$(vf_netdev 0)" unmanaged
    expect_equal "it has removed the address" 0 "$(addresses "$(vf_netdev 0)")"
else
    expect_equal "systemd-networkd keeps them" configured "$(networkd_state "$(vf_netdev 0)")"
    stop_networkd
    start_networkd
    expect "after a restart it does not manage them" wait_until 40 has_state networkd_state "$(vf_netdev 0)" unmanaged
    expect_equal "it has not removed the address" 1 "$(addresses "$(vf_netdev 0)")"
fi
expect "the documented commands take address and link down" bash -euc "$(documented 'nmcli device set VF' | sed "s/.*no && //; s/VF/$(vf_netdev 0)/g")"
left_alone networkd_state "$(vf_netdev 0)"
require "new VFs" new_vfs
for index in 0 1; do
    expect_equal "VF $index is marked" "$marked" "$(marks "$(vf_netdev $index)")"
    left_alone networkd_state "$(vf_netdev $index)"
done
expect_equal "the PF is not marked" "" "$(marks "$netdev")"
configured networkd_state "$netdev" configured

section "a VF that a VM returns"
install_vfpass
start_libvirt
vfpass hook install
define_guest train0
mapping train0 rail0 "$pf" 'index: 0'
expect "attach takes the VF" vfpass attach train0
expect "detach returns it" vfpass detach train0
expect "its netdev appears" wait_until 60 have_netdevs
udevadm settle
expect_equal "it is marked" "$marked" "$(marks "$(vf_netdev 0)")"
left_alone networkd_state "$(vf_netdev 0)"

section "exceptions"
documented 'SUBSYSTEM=="net", KERNELS==' >"$exceptions"
udevadm control --reload
require "new VFs" new_vfs
expect_equal "the VF with that address is an exception" "VFPASS_VF=0 " "$(marks "$(vf_netdev 1)")"
configured networkd_state "$(vf_netdev 1)" configured
left_alone networkd_state "$(vf_netdev 0)"
documented 'SUBSYSTEM=="net", TEST=="device/physfn/net/' >"$exceptions"
udevadm control --reload
require "new VFs" new_vfs
for index in 0 1; do
    expect_equal "VF $index of the PF is an exception" "VFPASS_VF=0 " "$(marks "$(vf_netdev $index)")"
    configured networkd_state "$(vf_netdev $index)" configured
done
rm "$exceptions"
stop_networkd

section "NetworkManager, with a profile for every netdev"
expect "deactivation" bash -euc "$(sed -n 's/^.\(rm .*reload\). deactivates.*/\1/p' /vfpass/docs/network-managers.md)"
refuse "the rule is gone" test -e "$rule"
require "new VFs" new_vfs
expect_equal "without the rule udev marks nothing" "" "$(marks "$(vf_netdev 0)")"
mkdir -p /run/dbus /run/NetworkManager/system-connections
printf '[main]\nplugins=keyfile\nauth-polkit=false\ndns=none\nrc-manager=unmanaged\nhostname-mode=none\n' \
    >/etc/NetworkManager/NetworkManager.conf
printf '[connection]\nid=all\ntype=ethernet\nmulti-connect=3\n\n[ipv4]\nmethod=manual\naddress1=192.0.2.2/24\n\n[ipv6]\nmethod=disabled\n' \
    >/run/NetworkManager/system-connections/all.nmconnection
chmod 600 /run/NetworkManager/system-connections/all.nmconnection
dbus-daemon --system --fork
NetworkManager --no-daemon >/tmp/network-manager.log 2>&1 &
configured manager_state "$(vf_netdev 0)" connected
expect "activation" bash -euc "$(documented 'ln -s')"
expect_equal "the VFs that exist keep their properties" "" "$(marks "$(vf_netdev 0)")"
expect "the documented event for VFs that exist" bash -euc "$(documented 'udevadm trigger') && udevadm settle"
expect_equal "they are marked" "$marked" "$(marks "$(vf_netdev 0)")"
expect_equal "the PF is not" "" "$(marks "$netdev")"
# A fact that the page states; NetworkManager reads the property only when the netdev appears.
expect_equal "NetworkManager keeps the connection" connected "$(manager_state "$(vf_netdev 0)")"
expect "the documented command for it" bash -euc "$(documented 'nmcli device set VF' | sed "s/VF/$(vf_netdev 0)/g")"
left_alone manager_state "$(vf_netdev 0)"
expect "NetworkManager leaves it alone after the next event" bash -euc "$(documented 'udevadm trigger') && udevadm settle"
left_alone manager_state "$(vf_netdev 0)"
require "new VFs" new_vfs
for index in 0 1; do left_alone manager_state "$(vf_netdev $index)"; done
# The PF has had its address since systemd-networkd configured it.
expect "NetworkManager has the PF" wait_until 40 manages "$netdev"
expect "NetworkManager may manage a VF by hand" nmcli device set "$(vf_netdev 0)" managed yes
refuse "the VF is no longer unmanaged" wait_until 3 has_state manager_state "$(vf_netdev 0)" unmanaged
finish
