#!/bin/bash
# vfpass-probe over SoftRoCE: data in both directions, every fault found on both sides, unsupported features, and
# connections by rdma_cm with what prevents them.
# covers: src/probe tests/lab/probe_common.sh tests/lab/validate_json.cpp
set -euo pipefail
# shellcheck source=SCRIPTDIR/probe_common.sh
source /vfpass/tests/lab/probe_common.sh

document=''
# said EXIT NAME COMMAND...: a check that keeps the command's output, a document, for `member`.
# shellcheck disable=SC2154  # last_output is what lib.sh's checks leave
said() {
    expect_exit "$@"
    document=$last_output
}
# member PATH: a member of that document.
member() { jq -r "$1" <<<"$document"; }
# valid: the document matches the schema in docs/json.
valid() {
    expect "the document matches the schema" /vfpass/build/tests/lab/validate-json \
        /vfpass/docs/json/probe.schema.json <<<"$document"
}

section "starting without a device"
said 0 "hello" "$probe" hello
expect_equal "hello has the protocol version" 1 "$(member .protocol)"
expect_equal "hello has a build ID of 20 bytes" 40 "$(member '.build_id | length')"
expect_exit 1 "loopback on a device that does not exist" "$probe" loopback --device mlx5_7
expect_said "the error has the reason" "no RDMA device mlx5_7"

section "inventory with a SoftRoCE link"
expect "a SoftRoCE link is created" make_rxe
said 0 "inventory" "$probe" inventory
expect_equal "the inventory has the device" rxe0 "$(member '.rdma.devices[0].name')"
expect_equal "the device's port is active" "4: ACTIVE" "$(member '.rdma.devices[0].ports[0].state')"
expect_equal "RoCE version 2 with IPv4 is recommended" "RoCE v2 0000:0000:0000:0000:0000:ffff:0a63:0001" \
    "$(member '.rdma.devices[0].ports[0] | .gids[.gid_index] | .type + " " + .gid')"
expect_equal "DMA-BUF is reported as not supported" "not supported here: Operation not supported (EOPNOTSUPP)" \
    "$(member '.rdma.devices[0].dma_buf.detail')"
valid
expect_contains "a missing GPU driver is reported" libcuda "$probe" inventory
expect_exit 1 "GPU memory without a GPU" loopback --target-memory gpu
expect_said "the error names the missing library" "libcuda.so.1"

section "every byte arrives"
for operation in write read; do
    for bytes in 2 63 4097 64K 1000003; do
        said 0 "$operation of $bytes" loopback --operation $operation --bytes $bytes --iterations 50
        expect_equal "every byte is correct" 0 "$(member '[.runs[0].owners[].wrong_bytes] | add')"
        expect_equal "the receiver checked every message" true \
            "$(member '([.runs[0].owners[].messages_checked] | add) > 50')"
    done
done
expect "messages of 16 MiB" loopback --bytes 16M --iterations 3
expect "an odd alignment" loopback --bytes 4099 --alignment 13 --iterations 50
expect "relaxed ordering" loopback --relaxed-ordering --iterations 50
said 0 "several cycles over a small ring" loopback --bytes 8K --memory-limit 64K --iterations 100
expect_equal "the ring has 8 slots" 8 "$(member '.runs[0].slots')"
valid
said 0 "a measurement with the default minimum time" loopback --iterations 8
expect_equal "the warm-up used the whole ring" 8 "$(member '.runs[0].warm_slots')"
expect_equal "it has at least three passes" true "$(member '.runs[0].bandwidth.passes >= 3')"
expect_equal "it has the messages of all passes" true "$(member '.runs[0].bandwidth | .messages == .passes * 8')"
expect_equal "every message of them is checked" true \
    "$(member '.runs[0] | ([.owners[].messages_checked] | add) == .bandwidth.messages + .warm_slots')"
valid
said 0 "exactly the given iterations" loopback --iterations 20 --memory-limit 512K --minimum-time 0
expect_equal "no message is added" 20 "$(member '.runs[0].bandwidth.messages')"
said 0 "read latency" loopback --operation read --latency --bytes 8 --iterations 500
expect_equal "the latency has a median" true "$(member '.runs[0].latency.median > 0')"
valid
said 0 "a preset with a different iteration count" loopback --preset latency --iterations 50
expect_equal "each run has the given iteration count" "50 50" "$(member '[.runs[].settings.iterations] | join(" ")')"
expect "send latency" loopback --operation send --bytes 8 --iterations 500
expect "sends of 64 KiB" loopback --operation send --bytes 64K --iterations 20

section "injected faults"
# found OPERATION FAULT DAMAGE BYTES: the fault is found and reported as DAMAGE, in a later cycle of a small ring.
found() {
    said 4 "$1 of $4: $2" loopback --operation "$1" --bytes "$4" --iterations 40 \
        --memory-limit "$((8 * ($4 < 64 ? 64 : $4)))" --inject "$2" --inject-message 27
    expect_equal "the damage is reported as $3" "$3" "$(member '[.runs[0].owners[].corruptions[].damage] | join(" ")')"
}
for operation in write read; do
    for bytes in 2 8 4096 65536; do
        found $operation flip flipped $bytes
        found $operation lost lost $bytes
        found $operation stale stale $bytes
        # Data in the wrong place, and the place that remains empty.
        found $operation misplaced "misplaced lost" $bytes
        found $operation truncate truncated $bytes
        found $operation duplicate duplicate $bytes
    done
done
found send flip flipped 64
found send stale stale 64
found send truncate truncated 64

section "two processes"
# pair EXIT NAME OPTION...: a listener and a connecting probe; both end with this exit code.
pair() {
    local wanted=$1 name=$2 code=0
    shift 2
    "$probe" listen --device rxe0 --token secret --deadline 120 >/tmp/listen.json &
    local listener=$!
    expect_exit "$wanted" "$name" "$probe" connect 127.0.0.1 --device rxe0 --token secret \
        --deadline 120 "$@"
    wait "$listener" || code=$?
    expect_equal "the listener has the same exit code" "$wanted" "$code"
}
pair 0 "write" --iterations 100
pair 0 "read" --operation read --iterations 100
pair 0 "send" --operation send --bytes 64 --iterations 100
# The same with messages that are copied as files, as through the guest agent.
mkdir -p /tmp/near /tmp/far
carry() {
    local number
    for ((number = 1; ; ++number)); do
        wait_until 60 test -e "$1/out.$number" || return
        cp "$1/out.$number" "$2/new" && mv "$2/new" "$2/in.$number"
    done
}
carry /tmp/near /tmp/far &
carry /tmp/far /tmp/near &
"$probe" listen --device rxe0 --folder /tmp/far --deadline 120 >/tmp/listen.json &
listener=$!
expect "the probes exchange messages through files" "$probe" connect --folder /tmp/near --device rxe0 --iterations 100 --deadline 120
code=0
wait "$listener" || code=$?
expect_equal "the other side passes" 0 "$code"
for fault in flip lost stale misplaced truncate duplicate; do
    pair 4 "write, $fault" --iterations 40 --inject $fault --inject-message 9
    pair 4 "read, $fault" --operation read --iterations 40 --inject $fault --inject-message 9
done
"$probe" listen --device rxe0 --token right --deadline 60 >/tmp/listen.json &
listener=$!
expect_exit 1 "a wrong token" "$probe" connect 127.0.0.1 --device rxe0 --token wrong --deadline 60
code=0
wait "$listener" || code=$?
expect_equal "the wrong token is refused on both sides" 1 "$code"
expect_exit 1 "connect without a listener" "$probe" connect 127.0.0.1 --device rxe0 --deadline 2

section "connecting by rdma_cm"
few=(--rdma-cm --bytes 4K --iterations 20 --minimum-time 0)
for operation in write read send; do
    said 0 "$operation over a connection of rdma_cm" loopback "${few[@]}" --operation $operation
    expect_equal "it has both IP addresses" "10.99.0.1 10.99.0.1" \
        "$(member '.runs[0].rdma_cm | .source + " " + .destination')"
    expect_equal "every byte is correct" 0 "$(member '[.runs[0].owners[].wrong_bytes] | add')"
    valid
done
pair 0 "two processes" "${few[@]}"
pair 4 "a fault is found" "${few[@]}" --inject flip --inject-message 9
ip link add probe1 type dummy && ip link set probe1 up && ip address add 10.98.0.1/24 dev probe1
expect_exit 1 "the address of an interface without RDMA" loopback "${few[@]}" --ip-address 10.98.0.1
expect_said "the error has the address and the device" "rdma_cm cannot bind to 10.98.0.1 of rxe0"
rdma link add rxe1 type rxe netdev probe1
wait_until 20 grep -q ffff:0a62:0001 /sys/class/infiniband/rxe1/ports/1/gids/1
expect_exit 1 "the address of another device" loopback "${few[@]}" --ip-address 10.98.0.1
expect_said "the error names both devices" "rdma_cm uses rxe1 for address 10.98.0.1, not rxe0"
rdma link delete rxe1 && ip link delete probe1
# The kernel loads the module when librdmacm asks for it.
echo 'install rdma_ucm /bin/false' >/etc/modprobe.d/rdma_ucm.conf
rm /dev/infiniband/rdma_cm
modprobe -r rdma_ucm
expect_exit 1 "the kernel has no rdma_ucm" loopback "${few[@]}"
expect_said "the remedy names the module" "modprobe rdma_ucm"
rm /etc/modprobe.d/rdma_ucm.conf
library=$(readlink -f /usr/lib/x86_64-linux-gnu/librdmacm.so.1)
mount --bind /dev/null "$library"
expect_exit 1 "librdmacm cannot be loaded" loopback "${few[@]}"
expect_said "the remedy names the package" "apt-get install librdmacm1"
said 0 "inventory without librdmacm" "$probe" inventory
expect_equal "it says so" false "$(member .rdma.librdmacm.found)"
umount "$library"
ip address delete 10.99.0.1/24 dev probe0
expect_exit 1 "no IP address" loopback "${few[@]}"
expect_said "the error has the reason" "no interface of rxe0 port 1 has one"

section "a link that goes down"
ip link set probe0 down
expect_exit 1 "the port is down" loopback --iterations 10
expect_said "the error has the reason" "is not active"
finish
