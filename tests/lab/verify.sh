# vfpass verify for real: a guest with SoftRoCE over its VF, the probe pushed through its agent, every byte
# checked, and the PF's counters, which move as a card's would. Then each link broken by itself.
# covers: src/guest src/probe src/cli/verify.cpp src/report/verify_report.cpp tests/lab/verify_common.sh lab/lib/traffic.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# Emulated twice, SoftRoCE moves about 2 MB/s: small messages, and few of them.
small=(--bytes 4K --iterations 16 --no-tools)
verify_json() { vfpass verify train0 --json "${small[@]}" "$@" 2>/tmp/verify.said; }

# Their names end with the time.
latest_report() { find /var/lib/vfpass/reports -type f | sort | tail -n 1; }

section "a guest with a VF, started through the hook"
install_vfpass
load_standin
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
start_libvirt
define_guest train0 --rdma
mapping train0 rail0 "$pf" 'index: 1' 'guest: {mtu: 9000}'
printf 'verify: {on-start: report}\n' >>"$vms/train0.yaml"
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
refuse "a VM that does not run is not verified" vfpass verify train0
expect "virsh start" virsh start train0
verified 6 "nobody answers yet"
broken agent "agent"
expect "the guest's agent answers" wait_for_agent train0 400
took "the guest's start"
mirror_traffic train0 &
mirror=$!

section "SoftRoCE in the guest"
netdev=$(guest_shell train0 'ls /sys/bus/pci/drivers/mlx5_core/0*/net')
# MTU 9000 makes an RDMA MTU of 4096: fewer packets.
rdma_up() {
    guest_shell train0 "ip link set lo up; ip link set $netdev mtu 9000 up
        ip address add 10.99.0.1/24 dev $netdev 2>/dev/null
        rdma link add rxe0 type rxe netdev $netdev && ls /dev/infiniband"
}
expect_contains "rxe" uverbs0 rdma_up

section "verified after its start, since the mapping asks for it"
expect_contains "verify --pending" "VM train0: passed" \
    vfpass verify --pending --wait 60 "${small[@]}"
document=$(cat "$(latest_report)")
expect_equal "the report is kept" passed "$(member .result)"
expect_contains "the probe was copied into the guest" "just copied" finding probe seen
expect_equal "written and read, and answered" "write read read send" \
    "$(member '[.figures[].operation] | join(" ")')"
expect_equal "every byte checked" true "$(member '[.figures[:2][].checked_bytes] | min >= 65536')"
expect_equal "the latency, too" true "$(member '[.figures[2:][].median_microseconds] | min > 0')"
seen device-host passed "on vfio-pci, open in process"
seen mtu passed "$netdev 9000, RDMA 4096"
seen gid-type passed "RoCE v2 0000:0000:0000:0000:0000:ffff:0a63:0001"
expect_contains "status knows of it" "last verification passed" vfpass status train0
expect "verify --pending" vfpass verify --pending
expect_equal "does it once" "" "$last_output"
took "it"

section "verify"
sent=$(vport_value 0 1 tx_bytes)
verified 0 "it passes again"
expect_contains "the probe is not copied again" "already there" finding probe seen
expect_equal "both counters' checks pass" "passed passed" \
    "$(member '[.findings[] | select(.key == "counters").result] | join(" ")')"
expect "the PF has counted 128 KiB more" test "$(vport_value 0 1 tx_bytes)" -ge "$((sent + 131072))"
expect_equal "and nothing for the other VF" 0 "$(vport_value 0 0 tx_bytes)"
took "it"

section "the guest's own tools, and relaxed ordering"
document=$(vfpass verify train0 --json --bytes 4K --iterations 16 --relaxed-ordering both)
expect_equal "all of it passes" passed "$(member .result)"
expect_equal "four transfers of ours" 4 \
    "$(member '[.figures[] | select(.source == "vfpass-probe" and .gigabits_per_second)] | length')"
expect_contains "side by side" "host write" finding relaxed-ordering seen
expect_contains "perftest has run" "ib_write_bw" finding perftest seen
expect_contains "its latency, too" "ib_read_lat" finding perftest seen
# Emulated twice it sometimes prints a zero, which is then told and no figure.
expect_equal "what it measured is a figure, or a warning" true "$(member '
    ([.figures[] | select(.source | startswith("ib_"))] | length == 2) or
    ([.findings[] | select(.key == "perftest")][0].result == "warning")')"
took "it"

section "what works, and should be otherwise"
guest_shell train0 "ip link set $netdev mtu 1500"
verified 0 "another MTU than the mapping's"
seen mtu warning "$netdev 1500, RDMA 1024: headers leave 0.926"
expect_contains "and what to do" "mtu 9000" finding mtu remedy
guest_shell train0 "ip link set $netdev mtu 9000"

section "where the probe may not run"
guest_shell train0 "mkdir -p /noexec && mount -t tmpfs -o noexec,mode=755 tmpfs /noexec"
verified 6 "its folder is mounted noexec" --guest-folder /noexec
broken probe "may not be run"
expect_contains "another folder is the way out" "--guest-folder" finding probe remedy

section "each broken link is found by itself"
mac=$(guest_shell train0 "cat /sys/class/net/$netdev/address; ip link set $netdev down")
verified 4 "the netdev is down"
broken link down
guest_shell train0 "ip link set $netdev address 02:00:00:00:00:99"
verified 4 "another MAC"
broken mac "$netdev 02:00:00:00:00:99"
guest_shell train0 "ip link set $netdev address $mac; ip link set $netdev up; rdma link delete rxe0"
verified 4 "no RDMA device"
broken rdma-device "0 others"
expect "rxe again" rdma_up
library=/lib/x86_64-linux-gnu/libibverbs.so.1
guest_shell train0 "mv $library /tmp/"
verified 4 "no libibverbs"
broken rdma-core "libibverbs.so.1"
guest_shell train0 "mv /tmp/libibverbs.so.1 $library; mv /dev/infiniband/uverbs0 /tmp/"
verified 4 "the device's file is gone"
broken rdma-opens "rxe0"
guest_shell train0 "mv /tmp/uverbs0 /dev/infiniband/"
verified 4 "a byte changes on its way" --inject flip
# Messages are numbered from the warm-up on.
broken data-host "flipped in message 16 at offset 2048"
verified 0 "repaired, all of it passes"
address=$(guest_shell train0 'ls -d /sys/bus/pci/drivers/mlx5_core/0*')
address=${address##*/}
guest_shell train0 "rdma link delete rxe0; echo $address >/sys/bus/pci/drivers/mlx5_core/unbind"
verified 4 "no driver in the guest"
broken driver "without a driver"
expect_contains "and which one" "modprobe mlx5_core" finding driver remedy
guest_shell train0 "echo $address >/sys/bus/pci/drivers/mlx5_core/bind"
netdev=$(guest_shell train0 'ls /sys/bus/pci/drivers/mlx5_core/0*/net')
expect "rxe again" rdma_up
took "all"

section "stopped in the middle"
# The pattern does not find itself.
probe_runs() { guest_shell train0 'ps | grep -q "[v]fpass-probe-.* loopback"'; }
probe_is_gone() { ! probe_runs; }
report=$(latest_report)
# SIGINT is ignored in a script's background.
vfpass verify train0 --bytes 4K --iterations 1000000 --no-tools 2>/tmp/verify.said &
verify=$!
expect "the probe runs in the guest" wait_until 240 probe_runs
kill -TERM "$verify"
wait "$verify"
expect_equal "verify ends by the signal" 143 "$?"
expect_contains "it says so" "stopped by SIGTERM" cat /tmp/verify.said
expect "nothing is left running in the guest" wait_until 60 probe_is_gone
expect_equal "and no report is kept" "$report" "$(latest_report)"
took "it"

section "a document of the probe is what its schema says"
probe_said() { guest_shell train0 "/var/lib/vfpass-probe/vfpass-probe-* $*" >/tmp/said.json; }
expect "inventory" probe_said inventory
expect "inventory: valid" "/vfpass/build/tests/lab/validate-json" \
    /vfpass/docs/json/probe.schema.json /tmp/said.json
expect "loopback" probe_said loopback --device rxe0 --bytes 4K --iterations 16
expect "loopback: valid" "/vfpass/build/tests/lab/validate-json" \
    /vfpass/docs/json/probe.schema.json /tmp/said.json

section "the guest's word alone is not enough"
kill "$mirror"
verified 4 "the PF's counters stand still"
broken counters "0 bytes"
expect_contains "although the guest saw every byte" passed finding data-host result
expect "the guest is suspended" virsh suspend train0
verified 6 "its agent is gone"
broken agent "not running"
expect_equal "the remedy is exact" "virsh resume train0" "$(finding agent remedy)"
expect_contains "status knows of it" "last verification not observable" vfpass status train0
finish
