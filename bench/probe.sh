#!/bin/bash
# probe.sh [ROUNDS [ITERATIONS]]: in the lab, vfpass-probe against perftest on one rxe link, in
# interleaved rounds of one boot; medians with the least and the most, and their ratios. Every process
# pair has its server and its client on the same device.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../tests/lab/probe_common.sh
source /vfpass/tests/lab/probe_common.sh
# shellcheck source=SCRIPTDIR/lib.sh
source /vfpass/bench/lib.sh

rounds=${1:-6} iterations=${2:-1000}
samples=$(mktemp -d)
gid_index=1
perftest_port=18600

fail() { echo "bench: $*" >&2; exit 1; }

# listens PORT: somebody does, as the kernel sees it; asking by connecting would be a connection.
listens() { grep -qE "$(printf ':%04X 0+:0000 0A' "$1")" /proc/net/tcp /proc/net/tcp6; }

# perftest SERIES COLUMN PROGRAM OPTION...: keeps this column of its last line of figures. Under
# emulation it now and then prints 0 or inf, and is asked again.
perftest() {
    local series=$1 column=$2 figure='' tries
    shift 2
    for ((tries = 0; tries < 5; ++tries)); do
        figure=$(run_perftest "$column" "$@") || exit
        [[ $figure =~ [1-9] ]] && break
    done
    [[ $figure =~ [1-9] ]] || fail "no figure from $1"
    echo "$figure" >>"$samples/$series"
}

run_perftest() {
    local column=$1 server
    shift
    set -- "$@" -d rxe0 -x $gid_index -F -n "$iterations" -p $perftest_port
    "$@" >/tmp/perftest-server 2>&1 &
    server=$!
    wait_until 30 listens $perftest_port || fail "$1 does not listen"
    "$@" 127.0.0.1 >/tmp/perftest-client 2>&1 || fail "$* failed: $(tail -n 3 /tmp/perftest-client)"
    wait "$server" || fail "$1's server failed"
    awk -v column="$column" '/^ *[0-9]+ +[0-9]+ / { value = $column } END { print value }' \
        /tmp/perftest-client
}

# ours SERIES FIGURE OPTION...: the same with two probes; both must have found every byte right.
ours() {
    local series=$1 figure=$2 server
    shift 2
    "$probe" listen --device rxe0 --deadline 120 >/tmp/probe-server &
    server=$!
    "$probe" connect 127.0.0.1 --device rxe0 --deadline 120 --iterations "$iterations" "$@" \
        >/tmp/probe-client || fail "the probe failed: $(cat /tmp/probe-client)"
    wait "$server" || fail "the probe's target failed: $(cat /tmp/probe-server)"
    jq -e ".runs[0].$figure" /tmp/probe-client >>"$samples/$series"
    jq -r '[.runs[0].owners[] | .prepare_seconds + .check_seconds] | add' /tmp/probe-client \
        >>"$samples/$series.owners"
}

gigabits=bandwidth.gigabits_per_second median=latency.median
measurements=(
    "ours write-checked $gigabits --operation write"
    "perftest write-perftest 4 ib_write_bw -s 65536 --report_gbits"
    "ours write-unchecked $gigabits --operation write --unchecked"
    "ours read-checked $gigabits --operation read"
    "perftest read-perftest 4 ib_read_bw -s 65536 --report_gbits"
    "ours read-unchecked $gigabits --operation read --unchecked"
    "ours read-latency $median --operation read --latency --bytes 8"
    "perftest read-latency-perftest 5 ib_read_lat -s 8"
    "ours send-latency $median --operation send --bytes 8"
    "perftest send-latency-perftest 5 ib_send_lat -s 8")

# round NUMBER: all of them, each time in another order: one that follows its own program finds the
# emulator's translations warm, and so has an advantage that is not its own.
round() {
    local i
    for ((i = 0; i < ${#measurements[@]}; ++i)); do
        # 3 and 10 have no common divisor, so the neighbours change, too.
        # shellcheck disable=SC2086  # words
        ${measurements[((i * ($1 % 2 ? 3 : 7) + $1) % ${#measurements[@]})]}
    done
}

# row NAME SERIES UNIT
row() {
    printf '%-28s %10s (%s-%s) %s\n' "$1" "$(median "$samples/$2")" "$(least "$samples/$2")" \
        "$(most "$samples/$2")" "$3"
}

# over NAME SERIES SERIES: the first's median over the second's.
over() { printf '%-44s %s\n' "$1" "$(ratio "$(median "$samples/$2")" "$(median "$samples/$3")")"; }

make_rxe
for ((number = 1; number <= rounds; ++number)); do
    round "$number"
    echo "round $number of $rounds (at $SECONDS s)"
done
echo
for operation in write read; do
    row "$operation, checked" $operation-checked Gb/s
    row "$operation, unchecked" $operation-unchecked Gb/s
    row "ib_${operation}_bw" $operation-perftest Gb/s
done
for operation in read send; do
    row "$operation latency" $operation-latency us
    row "ib_${operation}_lat" $operation-latency-perftest us
done
echo
for operation in write read; do
    over "$operation: checked over ib_${operation}_bw" $operation-checked $operation-perftest
    over "$operation: checked over unchecked" $operation-checked $operation-unchecked
done
for operation in read send; do
    over "$operation: latency over ib_${operation}_lat" $operation-latency $operation-latency-perftest
done
row "filling and checking writes" write-checked.owners s
