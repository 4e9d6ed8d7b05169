# vfpass verify of a guest with a VF, by the kernel's own mlx5_ib: the probe is copied through the agent, every byte is checked,
# and the card counts it. Then each link of the chain is broken separately.
# covers: src/guest/agent src/guest/verify src/probe src/commands/verify_command.cpp src/commands/all_vms.cpp src/report/verify_report.cpp tests/lab/verify_common.sh lab/connectx
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

# The model of the card transfers fast, and the guest checks slowly: with small messages, the transfers take the minimum time with
# few bytes to check.
small=(--bytes 64 --iterations 50000 --no-tools)
verify_json() { vfpass verify train0 --json "${small[@]}" "$@" 2>/tmp/verify.log; }

# The reports' names end with the time.
latest_report() { find /var/lib/vfpass/reports -type f | sort | tail -n 1; }

section "a guest with a VF, started through the hook"
install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
run_qemu_as libvirt-qemu
start_libvirt
define_guest train0 --rdma
mapping train0 rail0 "$pf" 'index: 1' 'guest: {mtu: 9000}'
printf 'verify: {on-start: report}\n' >>"$vms/train0.yaml"
expect "hook install" vfpass hook install
expect "attach" vfpass attach train0
refuse "a VM that does not run is not verified" vfpass verify train0
expect "virsh start" virsh start train0
verified 6 "verify before the agent answers"
broken agent "agent"
expect "the guest's agent answers" wait_for_agent train0 400
took "the guest's start"
expect_contains "its RDMA device is up" uverbs0 rdma_up train0 10.99.0.1
netdev=$(guest_shell train0 'ls /sys/bus/pci/drivers/mlx5_core/0*/net')

section "verification after the start, as the mapping requests"
qemu_runs_as() { ps -o user= -p "$(cat /run/libvirt/qemu/train0.pid)"; }
expect_contains "QEMU runs as libvirt's user" libvirt-q qemu_runs_as
# Without systemd (tests/lab/units.sh), setpriv sets what the kernel enforces of the unit: the bounding set, read from the unit
# file that the build has made, and no new privileges.
capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' /vfpass/build/packaging/systemd/vfpass-verify.service)
require "the unit names its capabilities" test -n "$capabilities"
bounding=-all$(for each in $capabilities; do printf ',+%s' "$(tr '[:upper:]' '[:lower:]' <<<"${each#CAP_}")"; done)
as_unit() { setpriv --bounding-set "$bounding" --no-new-privs "$@"; }
without_ptrace() { setpriv --bounding-set "${bounding/,+sys_ptrace/}" --no-new-privs "$@"; }
qemu_files() { readlink "/proc/$(cat /run/libvirt/qemu/train0.pid)"/fd/*; }
export -f qemu_files
expect_contains "with the unit's capabilities QEMU's descriptors are readable" /dev/vfio/ as_unit bash -c qemu_files
refuse "without CAP_SYS_PTRACE they are not" without_ptrace bash -c qemu_files
expect "the mark is kept until the verification has ended" test -e "/run/vfpass/started/$(virsh domuuid train0 | head -n 1)"
expect_contains "status shows the pending verification" "its verification has not ended" vfpass status train0
expect_contains "verify --pending" "VM train0: passed" \
    as_unit vfpass verify --pending --wait 60 "${small[@]}"
expect_equal "no mark is left" "" "$(ls /run/vfpass/started)"
document=$(cat "$(latest_report)")
expect_equal "the report is saved" passed "$(member .result)"
expect_contains "the probe was copied into the guest" "just copied" finding probe seen
expect_equal "the figures have write and read, without and with relaxed ordering, and latency" "write read write read read send" \
    "$(member '[.figures[].operation] | join(" ")')"
expect_equal "every byte is checked" true "$(member '[.figures[:4][].checked_bytes] | min >= 65536')"
expect_equal "the latency is measured" true "$(member '[.figures[4:][].median_microseconds] | min > 0')"
seen device-host passed "on vfio-pci, open in process"
expect_equal "the host observed it" host "$(finding device-host observer)"
expect_equal "the guest reports the data" guest "$(finding data-host observer)"
seen mtu passed "$netdev 9000, RDMA 4096"
seen gid-type passed "RoCE v2 ::ffff:10.99.0.1"
expect_contains "status shows the last verification" "last verification passed" vfpass status train0
expect "verify --pending" vfpass verify --pending
expect_equal "a second verify --pending does nothing" "" "$last_output"
took "the section"

section "verify"
# sent_bytes INDEX: what the VF has sent, as the card counts it.
sent_bytes() {
    ip -s -d -j link show dev "$(pf_netdev 0)" |
        jq ".[0].vfinfo_list[] | select(.vf == $1).stats.tx | .bytes // .tx_bytes"
}
sent=$(sent_bytes 1)
verified 0 "verify passes again"
expect_equal "no progress in a pipe or a file" 0 "$(grep -c $'\e' /tmp/verify.log)"
on_terminal() { script --quiet --return --command "TERM=xterm vfpass verify train0 ${small[*]}" /dev/null; }
expect_contains "the progress is shown on a terminal" "rail0, 1 of 1: host memory" on_terminal
every_size() {
    vfpass verify train0 --json --sizes --bytes 64 --iterations 1 --relaxed-ordering off --no-tools --timeout 180 2>/tmp/verify.log
}
expect "verify passes with every message size" every_size
document=$last_output
expect_equal "each size has a figure for write and read" 48 \
    "$(member '[.figures[] | select(.source == "vfpass-probe --preset sizes")] | length')"
verified 0 "verify passes once more"
expect_contains "the probe is not copied again" "already there" finding probe seen
expect_equal "all counters checks pass" "passed passed passed passed" \
    "$(member '[.findings[] | select(.key == "counters").result] | join(" ")')"
expect "the PF has counted at least 128 KiB more" test "$(sent_bytes 1)" -ge "$((sent + 131072))"
expect_equal "the PF has counted nothing for the other VF" 0 "$(sent_bytes 0)"
document=$(vfpass verify --all --json "${small[@]}" 2>/tmp/verify.log)
expect_equal "verify --all has the report of each VM" "train0 0 passed" \
    "$(member '.vms[] | "\(.vm) \(.exit_code) \(.result.result)"')"
took "the section"

section "the guest's own tools, and relaxed ordering"
document=$(vfpass verify train0 --json --bytes 64 --iterations 50000 --relaxed-ordering both)
expect_equal "every check passes" passed "$(member .result)"
expect_equal "the probe has made four transfers" 4 \
    "$(member '[.figures[] | select(.source == "vfpass-probe" and .gigabits_per_second)] | length')"
expect_contains "relaxed ordering on and off are both reported" "host write" finding relaxed-ordering seen
expect_contains "ib_write_bw has run" "ib_write_bw" finding perftest seen
expect_contains "ib_read_lat has run" "ib_read_lat" finding perftest seen
# Under double emulation perftest sometimes prints a zero, which becomes a warning instead of a figure.
expect_equal "perftest's results are figures or a warning" true "$(member '
    ([.figures[] | select(.source | startswith("ib_"))] | length == 2) or
    ([.findings[] | select(.key == "perftest")][0].result == "warning")')"
took "the section"

section "warnings"
small+=(--relaxed-ordering off)
guest_shell train0 "ip link set $netdev mtu 1500"
verified 0 "an MTU that differs from the mapping"
seen mtu warning "$netdev 1500, RDMA 1024: headers leave 0.926"
expect_contains "the remedy is printed" "mtu 9000" finding mtu remedy
guest_shell train0 "ip link set $netdev mtu 9000"

section "a directory in which the probe cannot run"
guest_shell train0 "mkdir -p /noexec && mount -t tmpfs -o noexec,mode=755 tmpfs /noexec"
verified 6 "the guest directory is mounted noexec" --guest-folder /noexec
broken probe "not executable"
expect_contains "the remedy is another directory" "--guest-folder" finding probe remedy

section "broken links"
mac=$(guest_shell train0 "cat /sys/class/net/$netdev/address; ip link set $netdev down")
verified 4 "the netdev is down"
broken link down
guest_shell train0 "ip link set $netdev address 02:00:00:00:00:99"
verified 4 "another MAC"
broken mac "$netdev 02:00:00:00:00:99"
guest_shell train0 "ip link set $netdev address $mac; ip link set $netdev up; rmmod mlx5_ib"
verified 4 "no RDMA driver"
broken rdma-device "0 others"
expect_contains "the remedy names the driver" "modprobe mlx5_ib" finding rdma-device remedy
guest_shell train0 'insmod /modules/mlx5_ib.ko'
expect_contains "the RDMA device is up again" uverbs0 rdma_up train0 10.99.0.1
library=/lib/x86_64-linux-gnu/libibverbs.so.1
guest_shell train0 "mv $library /tmp/"
verified 4 "no libibverbs"
broken rdma-core "libibverbs.so.1"
guest_shell train0 "mv /tmp/libibverbs.so.1 $library; mv /dev/infiniband/uverbs0 /tmp/"
verified 4 "the device file is missing"
broken rdma-opens "mlx5_0"
guest_shell train0 "mv /tmp/uverbs0 /dev/infiniband/"
verified 4 "a byte is corrupted" --inject flip
# The numbering of messages includes the warm-up.
broken data-host "flipped in message 50000 at offset 32"
verified 0 "verify passes after the repair"
address=$(guest_shell train0 'ls -d /sys/bus/pci/drivers/mlx5_core/0*')
address=${address##*/}
guest_shell train0 "echo $address >/sys/bus/pci/drivers/mlx5_core/unbind"
verified 4 "no driver in the guest"
broken driver "without a driver"
expect_contains "the remedy names the driver" "modprobe mlx5_core" finding driver remedy
guest_shell train0 "echo $address >/sys/bus/pci/drivers/mlx5_core/bind"
expect_contains "the RDMA device is up again" uverbs0 rdma_up train0 10.99.0.1
took "the whole section"

section "verify stopped by a signal"
# The pattern does not match its own command line.
probe_runs() { guest_shell train0 'ps | grep -q "[v]fpass-probe-.* loopback"'; }
probe_is_gone() { ! probe_runs; }
report=$(latest_report)
# A background job of a script ignores SIGINT.
vfpass verify train0 --bytes 4K --iterations 1000000 --no-tools 2>/tmp/verify.log &
verify=$!
expect "the probe runs in the guest" wait_until 240 probe_runs
kill -TERM "$verify"
wait "$verify"
expect_equal "the exit code is that of the signal" 143 "$?"
expect_contains "the message names the signal" "stopped by SIGTERM" cat /tmp/verify.log
expect "no probe is left running in the guest" wait_until 60 probe_is_gone
expect_equal "no report is saved" "$report" "$(latest_report)"
took "the section"

section "the probe's documents and their schema"
probe_said() { guest_shell train0 "/var/lib/vfpass-probe/vfpass-probe-* $*" >/tmp/said.json; }
expect "inventory" probe_said inventory
expect "the inventory matches the schema" "/vfpass/build/tests/lab/validate-json" \
    /vfpass/docs/json/probe.schema.json /tmp/said.json
device=$(guest_shell train0 'ls /sys/class/infiniband')
expect "loopback" probe_said loopback --device "$device" --bytes 4K --iterations 16
expect "the loopback document matches the schema" "/vfpass/build/tests/lab/validate-json" \
    /vfpass/docs/json/probe.schema.json /tmp/said.json

section "the host's counters decide"
card 0 freeze vf1 >/dev/null
verified 4 "the PF's counters do not change"
broken counters "0 bytes"
expect_contains "the guest reports every byte as correct" passed finding data-host result
expect "the guest is suspended" virsh suspend train0
verified 6 "verify of a suspended guest"
broken agent "not running"
expect_equal "the remedy is virsh resume" "virsh resume train0" "$(finding agent remedy)"
expect_contains "a run with limits of its own is not the last verification" "last verification passed" vfpass status train0
expect_exit 6 "verify as the mapping asks" vfpass verify train0 --no-tools
expect_contains "status shows the last verification" "last verification not observable" vfpass status train0
finish
