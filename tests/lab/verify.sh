# vfpass verify for real: a guest with SoftRoCE over its VF, the probe pushed through its agent, every byte
# checked, and the PF's counters, which move as a card's would. Then each link broken by itself.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

# Emulated twice, SoftRoCE moves about 2 MB/s: small messages, and few of them.
small=(--bytes 4K --iterations 16)

# verified EXIT NAME [OPTION...]: a check; the report is kept for `finding`.
# shellcheck disable=SC2154  # last_output is what lib.sh's checks leave
verified() {
    local wanted=$1 name=$2
    shift 2
    expect_exit "$wanted" "$name" vfpass verify train0 --json "${small[@]}" "$@"
    document=$last_output
}
document=''

# member FILTER: of that report.
member() { jq -r "$1" <<<"$document"; }

# finding KEY FIELD: of the check with this key, its first that is not passed.
finding() { member "[.findings[] | select(.key == \"$1\")] | (map(select(.result != \"passed\")) + .)[0].$2"; }

# broken KEY WORDS...: it is this link that is broken, it says so, and nothing behind it was tried.
broken() {
    local key=$1
    shift
    expect_equal "$key is the broken link" "$key" \
        "$(member '[.findings[] | select(.result == "failed" or .result == "not_observable").key] | join(" ")')"
    expect_contains "it says what it saw" "$*" finding "$key" seen
    expect "and what to do" test "$(finding "$key" remedy)" != null
}

section "a guest with a VF, started through the hook"
install_vfpass
load_standin
pf=$(pf_address 0)
make_vfs "$pf" 2
ip link set dev "$(pf_netdev 0)" up
start_libvirt
define_guest train0 --rdma
mapping train0 rail0 "$pf" 'index: 1'
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

section "verify"
vfpass verify train0 "${small[@]}"
echo "rc $?"
guest_shell train0 'dmesg | tail -5; cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts'
cat /sys/bus/pci/devices/$pf/vports
took "it"
finish
