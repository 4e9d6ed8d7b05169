# The second half: what host.yaml names is made again at boot, and a record of the other boot claims nothing.
# covers: src/host/soft_roce.cpp src/plan/soft_roce* src/state/soft_roce_table.* packaging
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
expect "somebody makes one of the same name before us" rdma link add rxe1 type rxe netdev lab1
expect_exit 3 "host show: one is missing" vfpass host show
expect "host apply, as vfpass-soft-roce.service does" vfpass host apply --only soft-roce
expect_equal "both are there" "rxe0@lab0 rxe1@lab1" "$(rdma_links)"
expect "host show has nothing to say" vfpass host show
printf 'version: 1\n' >/etc/vfpass/host.yaml
expect "host.yaml names them no more: host apply" vfpass host apply
expect_equal "ours is gone, the other one is not" rxe1@lab1 "$(rdma_links)"
finish
