# Live migration of a guest with a VF between two hosts, by mlx5_vfio_pci and libvirt, without vfpass: drivers, QEMU and libvirt on the model
# of a ConnectX (lab/connectx/migration.c). The target's VF has the same address as the source's; both PFs set the same MAC. While it moves,
# the guest has two reliable connections to the peer (lab/image/rdma_numbers.c): over one both send in turn, which stops by itself with the
# guest; over the other the peer writes into the guest's memory all the time, and its requests are lost meanwhile.
# covers: lab/connectx lab/machines/connectx-migration lab/lib/link.sh lab/outside/other_hosts.sh lab/image/rdma_numbers.c
# covers: tests/lab/rdma_common.sh tests/lab/two_hosts_common.sh
# shellcheck shell=bash disable=SC2154  # last_code is what expect leaves
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../../lab/lib/connectx.sh
source /vfpass/lab/lib/connectx.sh
# shellcheck source=SCRIPTDIR/rdma_common.sh
source /vfpass/tests/lab/rdma_common.sh
# shellcheck source=SCRIPTDIR/two_hosts_common.sh
source /vfpass/tests/lab/two_hosts_common.sh

section "$role host: a VF that can be moved"
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
echo 0 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
ip link set "$netdev" up
expect "2 VFs are created" make_vfs "$pf" 2
vf=$(vf_of "$pf" 0)
expect "the VF has the guest's MAC" ip link set "$netdev" vf 0 mac 52:54:00:00:00:10
# devlink has ports of VFs only in switchdev mode; the card keeps what is set there.
expect "switchdev mode" devlink dev eswitch set "pci/$pf" mode switchdev
expect "the VF is made migratable" devlink port function set "$(devlink_port "$pf" 0)" migratable enable
expect "legacy mode" devlink dev eswitch set "pci/$pf" mode legacy
modprobe -a vfio-pci vfio_iommu_type1
require "the VF is bound to mlx5_vfio_pci" bind_to "$vf" mlx5_vfio_pci
start_libvirt
expect "the link to the other host is up" join_link "$number"

if [ "$role" = second ]; then
    hostname second
    expect "the peer has a MAC" ip link set "$netdev" vf 1 mac 52:54:00:00:00:11
    modprobe -a mlx5_ib ib_uverbs
    expect "the peer's VF is bound to mlx5_core" bind_to "$(vf_of "$pf" 1)" mlx5_core
    expect "it is in a namespace" put_in_namespace "$pf" 1
    name_vf 1
    expect "it has an address" in_vf 1 "ip addr add 192.0.2.1/24 dev ${vf_netdev[1]}"
    require "it has an RDMA device" wait_until 60 test -d "/sys/bus/pci/devices/$(vf_of "$pf" 1)/infiniband"
    device=$(rdma_of "$(vf_of "$pf" 1)")
    expect "the device has a GID for the address" wait_until 60 has_address_gid "$device" c000:0201
    ip netns exec vf1 rdma_numbers answer "$device" 7001 >/tmp/answered 2>&1 &
    echo "$device" >/lab/link/device
    expect "it waits for a connection" wait_until 60 in_vf 1 "grep -q ':1B59 .* 0A ' /proc/net/tcp"
    serve_first 1800
    expect_equal "the peer has received nothing wrong" "" "$(grep -vxE '[0-9]+' /tmp/answered)"
    expect_equal "the card has loaded the VF's state once" 1 "$(moved 1 loaded)"
    expect_equal "the card knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf0.log)"
    finish
fi

guest_with_vf() {
    hostdev_xml "$vf" | sed "s|<source>|<driver name='vfio' model='mlx5_vfio_pci'/><alias name='ua-vf'/>&|" >/tmp/vf.xml
    guest_xml g --rdma --device /tmp/vf.xml | permit_migration ua-vf
}
ping_from_guest() { guest_shell g 'ping -c 3 -W 10 192.0.2.1'; }
# rounds: how many the guest has exchanged with the peer over its connection.
rounds() { guest_shell g 'wc -l </tmp/rounds'; }
rounds_exceed() { test "$(rounds)" -gt "$1"; }
# writes: how often the peer has written into the guest's memory and read back what it wrote.
writes() { there 'wc -l </tmp/written'; }
writes_exceed() { test "$(writes)" -gt "$1"; }
# its_counter NAME: of the peer's RDMA device.
its_counter() { there "cat /sys/class/infiniband/$device/ports/1/hw_counters/$1"; }

expect "an ssh key is created" make_ssh_key
reach_second
device=$(cat /lab/link/device)
guest_with_vf >/tmp/g.xml
expect "the guest is defined" virsh --quiet define /tmp/g.xml
expect "the guest starts" virsh --quiet start g
expect "its agent answers" wait_for_agent g 300
# shellcheck disable=SC2016  # for the guest's shell
expect "its VF has an address" guest_shell g 'd=$(ls /sys/class/net | grep -vx lo | head -n 1); ip addr add 192.0.2.2/24 dev $d && ip link set $d up'
expect "it reaches the peer" wait_until 60 ping_from_guest
# shellcheck disable=SC2016
expect "it has a reliable connection to the peer" guest_shell g 'until grep -q c000:0202 /sys/class/infiniband/*/ports/1/gids/*; do usleep 200000; done
    (rdma_numbers ask $(ls /sys/class/infiniband) 7001 192.0.2.1; echo $? >/tmp/ended) >/tmp/rounds 2>&1 </dev/null &'
expect "data goes both ways" wait_until 120 rounds_exceed 20
# shellcheck disable=SC2016
expect "it offers its memory" guest_shell g 'rdma_numbers hold $(ls /sys/class/infiniband) 7002 >/tmp/held 2>&1 </dev/null &
    until grep -q ":1B5A .* 0A " /proc/net/tcp; do usleep 200000; done'
expect "the peer writes into it" there "ip netns exec vf1 /lab/build/rdma_numbers write $device 7002 192.0.2.2 >/tmp/written 2>&1 </dev/null &"
expect "the data is there" wait_until 120 writes_exceed 20
expect_equal "no request was repeated" 0 "$(its_counter local_ack_timeout_err)"
took "the guest"

section "a migration"
# All of the memory counts as changed until the guest is stopped, so the stop may be as long as it takes.
expect "the guest may be stopped for minutes" virsh --quiet migrate-setmaxdowntime g 600000
expect "the guest migrates" timeout 900 virsh --quiet migrate --live g "$target" --migrateuri tcp://10.98.0.2
took "the migration"
expect "it is off here" wait_until 30 guest_off g
expect_equal "the card has saved the VF's state once" 1 "$(moved 1 saved)"
expect "it runs there" there 'virsh domstate g | grep -q running'
export LIBVIRT_DEFAULT_URI="$target"
expect "it reaches the peer" wait_until 120 ping_from_guest
# The target's logs are kept only if its own checks fail.
[ "$last_code" = 0 ] || there 'virsh domstate --reason g; tail -n 20 /var/log/libvirt/qemu/g.log /var/log/libvirt/qemu/g-console.log'
before=$(rounds) written=$(writes)
expect "its connection goes on" wait_until 300 rounds_exceed "$((before + 20))"
expect "the peer writes into its memory" wait_until 300 writes_exceed "$((written + 20))"
expect "the peer has repeated what was lost meanwhile" test "$(its_counter local_ack_timeout_err)" -ge 1
expect "the peer ends" there "pkill -TERM -f '[r]dma_numbers write'; while pgrep -f '[r]dma_numbers write'; do sleep 0.2; done"
there cat /tmp/written >/tmp/writes
guest_shell g 'killall rdma_numbers'
expect "it ends without an error" wait_until 60 guest_shell g 'grep -qx 0 /tmp/ended'
guest_shell g 'cat /tmp/rounds' >/tmp/rounds
echo "   rounds soon after the migration and at the end: $before, $(wc -l </tmp/rounds); writes: $written, $(wc -l </tmp/writes);" \
    "the peer's timeouts: $(its_counter local_ack_timeout_err)"
expect "every byte of every round was right" cmp /tmp/rounds <(seq "$(wc -l </tmp/rounds)")
expect "every byte of every write was right" cmp /tmp/writes <(seq "$(wc -l </tmp/writes)")
# shellcheck disable=SC2016
expect_equal "its VF's driver has no complaint" "" "$(guest_shell g 'dmesg | grep -E "mlx5.*(timeout|failed|error|[Ww]arn)|WARNING:|BUG:"')"
touch /lab/link/done
expect_equal "the kernel has no complaint" "" "$(complaints)"
expect_equal "the card knew every command" "" "$(grep -h ' 0x2 ' /lab/control/pf0.log)"
finish
