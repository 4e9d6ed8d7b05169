# SoftRoCE links by host.yaml: made, kept, taken away; nobody else's. What `rdma` and perftest see decides.
# covers: src/host/soft_roce.cpp src/host/rdma_message.* src/plan/soft_roce* src/state/soft_roce_table.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

# links [NAME@NETDEV...]: host.yaml with these SoftRoCE links and nothing else.
links() {
    local link
    printf 'version: 1\nsoft-roce:\n' >/etc/vfpass/host.yaml
    for link in "$@"; do
        printf '  - {name: %s, netdev: %s}\n' "${link%%@*}" "${link#*@}" >>/etc/vfpass/host.yaml
    done
    [ $# != 0 ] || printf 'version: 1\n' >/etc/vfpass/host.yaml
}

# rdma_links: what the kernel's own tool lists, one NAME@NETDEV a line.
rdma_links() { rdma -j link show | jq -r '.[] | .ifname + "@" + .netdev' | sort; }

# The kernel's number of a link: another one means another link.
number_of() { rdma -j link show | jq ".[] | select(.ifname == \"$1\") | .ifindex"; }

# device_nodes: without udev nobody makes them, and each new link gets a number anew.
device_nodes() {
    local device
    rm -rf /dev/infiniband
    mkdir /dev/infiniband
    for device in /sys/class/infiniband_verbs/uverbs*; do
        mknod "/dev/infiniband/$(basename "$device")" c \
            "$(cut -d: -f1 "$device/dev")" "$(cut -d: -f2 "$device/dev")"
    done
}

section "a host without RDMA"
install_vfpass
for netdev in lab0 lab1 lab2; do
    modprobe dummy && ip link add "$netdev" type dummy && ip link set "$netdev" mtu 9000 up
done
links rxe0@lab0
refuse "no RDMA module is loaded" grep -qE '^(ib_core|rdma_rxe|crc32_generic) ' /proc/modules
expect_exit 3 "host show: the link is wanted" vfpass host show
expect_exit 3 "a dry run ends as plan does" vfpass host apply --dry-run
expect_said "and says what it would do" "create SoftRoCE link rxe0 on netdev lab0"
expect_said "and that SoftRoCE is deprecated" "deprecates it"
refuse "and loads no module" grep -q '^rdma_rxe ' /proc/modules
expect_exit 2 "another part of host.yaml cannot be named" vfpass host apply --only eswitch
expect "apply of the PFs alone makes no link" vfpass host apply --only pfs
refuse "there is none" test -e /sys/class/infiniband/rxe0

section "made"
expect "host apply" vfpass host apply
expect_equal "the link is there" rxe0@lab0 "$(rdma_links)"
expect "host show has nothing to say" vfpass host show
expect_contains "and who made it" '"made_by_vfpass": true' vfpass --json host show
number=$(number_of rxe0)
expect "the same again" vfpass host apply
expect_contains "does nothing" '"actions": []' vfpass --json host apply
expect_equal "it is the same link" "$number" "$(number_of rxe0)"
ip addr add 10.99.0.1/24 dev lab0
device_nodes
wait_until 20 grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state
wait_until 20 grep -q ffff:0a63:0001 /sys/class/infiniband/rxe0/ports/1/gids/1
ib_write_bw -d rxe0 -s 4096 -n 50 >/tmp/server 2>&1 &
server=$!
wait_until 30 grep -q 'Waiting for client' /tmp/server
expect "RDMA goes through it (perftest)" ib_write_bw -d rxe0 -s 4096 -n 50 127.0.0.1
expect "on both sides" wait "$server"

section "in use"
ib_write_bw -d rxe0 >/tmp/server 2>&1 &
server=$!
wait_until 30 sh -c 'rdma resource show ctx dev rxe0 | grep -q ctxn'
links
expect_exit 3 "host show: it is wanted no more" vfpass host show
expect_exit 5 "a dry run refuses" vfpass host apply --dry-run
expect_exit 5 "host apply refuses" vfpass host apply
expect_said "the user is named" "process $server (ib_write_bw)"
expect_equal "the link stays" "$number" "$(number_of rxe0)"
expect "and its user, too" kill -0 "$server"
links rxe0@lab1
expect_exit 5 "nor is it moved" vfpass host apply
expect_equal "the link stays on its netdev" rxe0@lab0 "$(rdma_links)"
kill "$server"
wait "$server" 2>/dev/null

section "moved, and another name"
expect "host apply" vfpass host apply
expect_equal "it is on the other netdev" rxe0@lab1 "$(rdma_links)"
links rxe9@lab1
expect "host apply" vfpass host apply
expect_equal "it has the other name" rxe9@lab1 "$(rdma_links)"
links rxe0@lab0 rxe1@lab1
expect "two at once, one instead of another" vfpass host apply
expect_equal "both are there" "rxe0@lab0 rxe1@lab1" "$(rdma_links | xargs)"
links rxe0@lab1 rxe1@lab0
expect "they change places" vfpass host apply
expect_equal "both have" "rxe0@lab1 rxe1@lab0" "$(rdma_links | xargs)"

section "what cannot be made"
links rxe0@lab1 rxe1@gone0
expect_exit 2 "a netdev that is not there" vfpass host apply
expect_said "is named with its place" "host.yaml:4:5: there is no netdev gone0"
expect_equal "the link stays where it was" "rxe0@lab1 rxe1@lab0" "$(rdma_links | xargs)"
modprobe 8021q && ip link add link lab2 name lab2.5 type vlan id 5
links rxe0@lab1 rxe1@lab0 rxe2@lab2.5
expect_exit 2 "a VLAN" vfpass host apply
expect_said "is called one" "netdev lab2.5 is a VLAN"
printf 'version: 1\nsoft-roce: [{name: rxe0, netdev: lab0}, {name: rxe0, netdev: lab1}]\n' >/etc/vfpass/host.yaml
expect_exit 2 "one name twice" vfpass host apply
expect_said "is a mistake" "SoftRoCE link rxe0 is listed twice"

section "somebody else's links"
links
expect "host apply takes ours away" vfpass host apply
expect_equal "none is left" "" "$(rdma_links)"
rdma link add other0 type rxe netdev lab2
links rxe0@lab0
expect "host apply" vfpass host apply
expect_contains "host show tells whose they are" "others" vfpass host show
links other0@lab2
expect "a foreign link may be named" vfpass host apply
expect_equal "ours went, the foreign one is as wanted" other0@lab2 "$(rdma_links)"
links
expect "and dropped again" vfpass host apply
expect_equal "and stays, for it is not ours" other0@lab2 "$(rdma_links)"
links other0@lab1
expect_exit 5 "it is not moved" vfpass host apply
expect_said "and the way out is told" "rdma link delete other0"
links rxe2@lab2
expect_exit 5 "its netdev is taken" vfpass host apply
expect_said "by it" "netdev lab2 carries SoftRoCE link other0 already"
links rxe0@lab0
expect "host apply" vfpass host apply
rdma link delete rxe0 && rdma link add rxe0 type rxe netdev lab0
links
expect "a link that took the place of ours" vfpass host apply
expect_equal "is not ours" "other0@lab2 rxe0@lab0" "$(rdma_links | xargs)"
rdma link delete rxe0
rdma link delete other0

section "from inside the boot unit's sandbox, where nobody may load modules"
modprobe -r rdma_rxe crc32_generic ib_uverbs 2>/dev/null
refuse "rdma_rxe is not loaded" grep -q '^rdma_rxe ' /proc/modules
links rxe0@lab0
# ProtectKernelModules=yes: no CAP_SYS_MODULE, nothing below /lib/modules.
expect "host apply" unshare --mount sh -c 'mount -t tmpfs none /lib/modules &&
    exec setpriv --bounding-set -sys_module,-sys_admin vfpass host apply --only soft-roce'
expect_equal "the kernel has loaded what it needs" rxe0@lab0 "$(rdma_links)"

section "the power is cut; soft_roce_after_reboot.sh goes on from there"
links rxe0@lab0 rxe1@lab1
expect "host apply" vfpass host apply
expect_equal "both are there" "rxe0@lab0 rxe1@lab1" "$(rdma_links | xargs)"
cp -a /var/lib/vfpass /etc/vfpass/host.yaml /lab/state/
finish
