# The second boot: the links in host.yaml are created again, and records of the previous boot claim no foreign link.
# covers: src/host/netlink/soft_roce_links.cpp src/plan/plan_soft_roce.cpp src/state/soft_roce_table.* packaging
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

rdma_links() { rdma -j link show | jq -r '.[] | .ifname + "@" + .netdev' | sort | xargs; }

install_vfpass
cp -a /lab/state/vfpass /var/lib/
cp -a /lab/state/host.yaml /etc/vfpass/
for netdev in lab0 lab1; do
    modprobe dummy && ip link add "$netdev" type dummy && ip link set "$netdev" up
done
modprobe -a crc32_generic rdma_rxe
expect_equal "no link has survived" "" "$(rdma_links)"
expect "a foreign link with one of the names is created first" rdma link add rxe1 type rxe netdev lab1
expect_exit 3 "host show reports the missing link" vfpass host show
expect "host apply, as vfpass-soft-roce.service does" vfpass host apply --only soft-roce
expect_equal "both links exist" "rxe0@lab0 rxe1@lab1" "$(rdma_links)"
expect "host show reports no change" vfpass host show
printf 'version: 1\n' >/etc/vfpass/host.yaml
expect "host apply after the links were removed from host.yaml" vfpass host apply
expect_equal "our link is removed and the foreign one is kept" rxe1@lab1 "$(rdma_links)"
finish
