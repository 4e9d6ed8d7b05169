# SoftRoCE links in host.yaml: created, kept and removed; foreign links are left alone. Checked with `rdma` and
# perftest.
# covers: src/host/netlink/soft_roce_links.cpp src/host/netlink/rdma_message.* src/plan/plan_soft_roce.cpp src/state/soft_roce_table.*
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

# links [NAME@NETDEV...]: writes host.yaml with only these SoftRoCE links.
links() {
    local link
    printf 'version: 1\nsoft-roce:\n' >/etc/vfpass/host.yaml
    for link in "$@"; do
        printf '  - {name: %s, netdev: %s}\n' "${link%%@*}" "${link#*@}" >>/etc/vfpass/host.yaml
    done
    [ $# != 0 ] || printf 'version: 1\n' >/etc/vfpass/host.yaml
}

# rdma_links: the links that `rdma` lists, one NAME@NETDEV per line.
rdma_links() { rdma -j link show | jq -r '.[] | .ifname + "@" + .netdev' | sort; }

# The kernel's index of a link: a different index means a different link.
number_of() { rdma -j link show | jq ".[] | select(.ifname == \"$1\") | .ifindex"; }

# device_nodes: creates the device nodes, which udev would do. A new link may get a new number.
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
expect_exit 3 "host show reports that the link is to be created" vfpass host show
expect_exit 3 "a dry run exits with 3 for pending changes" vfpass host apply --dry-run
expect_said "the dry run shows the step" "create SoftRoCE link rxe0 on netdev lab0"
expect_said "the dry run says that SoftRoCE is deprecated" "deprecates it"
refuse "the dry run loads no module" grep -q '^rdma_rxe ' /proc/modules
expect_exit 2 "--only refuses an unknown part" vfpass host apply --only eswitch
expect "host apply --only pfs creates no link" vfpass host apply --only pfs
refuse "there is no link" test -e /sys/class/infiniband/rxe0

section "creating a link"
expect "host apply" vfpass host apply
expect_equal "the link exists" rxe0@lab0 "$(rdma_links)"
expect "host show reports no change" vfpass host show
expect_contains "host show marks the link as ours" '"made_by_vfpass": true' vfpass --json host show
number=$(number_of rxe0)
expect "a second host apply" vfpass host apply
expect_contains "a second host apply takes no action" '"actions": []' vfpass --json host apply
expect_equal "the link is the same" "$number" "$(number_of rxe0)"
ip addr add 10.99.0.1/24 dev lab0
device_nodes
wait_until 20 grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state
wait_until 20 grep -q ffff:0a63:0001 /sys/class/infiniband/rxe0/ports/1/gids/1
ib_write_bw -d rxe0 -s 4096 -n 50 >/tmp/server 2>&1 &
server=$!
wait_until 30 grep -q 'Waiting for client' /tmp/server
expect "perftest works over the link" ib_write_bw -d rxe0 -s 4096 -n 50 127.0.0.1
expect "perftest's server succeeds" wait "$server"

section "a link in use"
ib_write_bw -d rxe0 >/tmp/server 2>&1 &
server=$!
wait_until 30 sh -c 'rdma resource show ctx dev rxe0 | grep -q ctxn'
links
expect_exit 3 "host show reports that the link is to be removed" vfpass host show
expect_exit 5 "a dry run refuses" vfpass host apply --dry-run
expect_exit 5 "host apply refuses" vfpass host apply
expect_said "the error names the process" "process $server (ib_write_bw)"
expect_equal "the link is kept" "$number" "$(number_of rxe0)"
expect "the process is still running" kill -0 "$server"
links rxe0@lab1
expect_exit 5 "host apply refuses to move the link" vfpass host apply
expect_equal "the link is still on its netdev" rxe0@lab0 "$(rdma_links)"
kill "$server"
wait "$server" 2>/dev/null

section "moving and renaming links"
expect "host apply" vfpass host apply
expect_equal "the link is on the other netdev" rxe0@lab1 "$(rdma_links)"
links rxe9@lab1
expect "host apply" vfpass host apply
expect_equal "the link has the new name" rxe9@lab1 "$(rdma_links)"
links rxe0@lab0 rxe1@lab1
expect "host apply replaces one link and adds another" vfpass host apply
expect_equal "both links exist" "rxe0@lab0 rxe1@lab1" "$(rdma_links | xargs)"
links rxe0@lab1 rxe1@lab0
expect "host apply swaps two links" vfpass host apply
expect_equal "both links have moved" "rxe0@lab1 rxe1@lab0" "$(rdma_links | xargs)"

section "invalid links"
links rxe0@lab1 rxe1@gone0
expect_exit 2 "a netdev that does not exist" vfpass host apply
expect_said "the error has the netdev and the position" "host.yaml:4:5: no netdev gone0"
expect_equal "the links are unchanged" "rxe0@lab1 rxe1@lab0" "$(rdma_links | xargs)"
modprobe 8021q && ip link add link lab2 name lab2.5 type vlan id 5
links rxe0@lab1 rxe1@lab0 rxe2@lab2.5
expect_exit 2 "a VLAN" vfpass host apply
expect_said "the error says that it is a VLAN" "netdev lab2.5 is a VLAN"
printf 'version: 1\nsoft-roce: [{name: rxe0, netdev: lab0}, {name: rxe0, netdev: lab1}]\n' >/etc/vfpass/host.yaml
expect_exit 2 "one name twice" vfpass host apply
expect_said "the error names the link" "SoftRoCE link rxe0 is listed twice"

section "foreign links"
links
expect "host apply removes our links" vfpass host apply
expect_equal "no link is left" "" "$(rdma_links)"
rdma link add other0 type rxe netdev lab2
links rxe0@lab0
expect "host apply" vfpass host apply
expect_contains "host show marks the link as foreign" "others" vfpass host show
links other0@lab2
expect "host.yaml may list a foreign link" vfpass host apply
expect_equal "our link is removed and the foreign one is kept" other0@lab2 "$(rdma_links)"
links
expect "the foreign link is removed from host.yaml" vfpass host apply
expect_equal "the foreign link is kept" other0@lab2 "$(rdma_links)"
links other0@lab1
expect_exit 5 "host apply refuses to move a foreign link" vfpass host apply
expect_said "the remedy is printed" "rdma link delete other0"
links rxe2@lab2
expect_exit 5 "host apply refuses a netdev with a foreign link" vfpass host apply
expect_said "the error names the foreign link" "netdev lab2 already carries SoftRoCE link other0"
links rxe0@lab0
expect "host apply" vfpass host apply
rdma link delete rxe0 && rdma link add rxe0 type rxe netdev lab0
links
expect "host apply with a foreign link that replaced ours" vfpass host apply
expect_equal "the foreign link is kept, not removed" "other0@lab2 rxe0@lab0" "$(rdma_links | xargs)"
rdma link delete rxe0
rdma link delete other0

section "in the boot unit's sandbox, which forbids loading modules"
modprobe -r rdma_rxe crc32_generic ib_uverbs 2>/dev/null
refuse "rdma_rxe is not loaded" grep -q '^rdma_rxe ' /proc/modules
links rxe0@lab0
# ProtectKernelModules=yes: no CAP_SYS_MODULE, and /lib/modules is empty.
expect "host apply" unshare --mount sh -c 'mount -t tmpfs none /lib/modules &&
    exec setpriv --bounding-set -sys_module,-sys_admin vfpass host apply --only soft-roce'
expect_equal "the kernel has loaded the modules and the link exists" rxe0@lab0 "$(rdma_links)"

section "power cut; soft_roce_after_reboot.sh continues"
links rxe0@lab0 rxe1@lab1
expect "host apply" vfpass host apply
expect_equal "both links exist" "rxe0@lab0 rxe1@lab1" "$(rdma_links | xargs)"
cp -a /var/lib/vfpass /etc/vfpass/host.yaml /lab/state/
finish
