#!/bin/bash
# probe.sh [ROUNDS [ITERATIONS]]: compares vfpass-probe with perftest on one rxe link in the lab, in interleaved
# rounds of one boot. Prints medians with minimum and maximum, and their ratios. Each pair of processes has its
# server and its client on the same device.
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

# listens PORT: whether a process listens, according to the kernel. A test by connecting would use up the
# connection.
listens() { grep -qE "$(printf ':%04X 0+:0000 0A' "$1")" /proc/net/tcp /proc/net/tcp6; }

# perftest SERIES COLUMN PROGRAM OPTION...: records this column of its last line of figures. Under emulation it
# sometimes prints 0 or inf; then it runs again.
perftest() {
    local series=$1 column=$2 figure='' tries
    shift 2
    for ((tries = 0; tries < 5; ++tries)); do
        figure=$(run_perftest "$column" "$@") || exit
        [[ $figure =~ [1-9] ]] && break
    done
    [[ $figure =~ [1-9] ]] || fail "$1: no figure in its output"
    echo "$figure" >>"$samples/$series"
}

run_perftest() {
    local column=$1 server
    shift
    set -- "$@" -d rxe0 -x $gid_index -F -n "$iterations" -p $perftest_port
    "$@" >/tmp/perftest-server 2>&1 &
    server=$!
    wait_until 30 listens $perftest_port || fail "$1: does not listen"
    "$@" 127.0.0.1 >/tmp/perftest-client 2>&1 || fail "$*: failed: $(tail -n 3 /tmp/perftest-client)"
    wait "$server" || fail "$1: its server failed"
    awk -v column="$column" '/^ *[0-9]+ +[0-9]+ / { value = $column } END { print value }' \
        /tmp/perftest-client
}

# probes SERIES FIGURE OPTION...: the same with two probes, which must both have found every byte correct.
probes() {
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
    "probes write-checked $gigabits --operation write"
    "perftest write-perftest 4 ib_write_bw -s 65536 --report_gbits"
    "probes write-unchecked $gigabits --operation write --unchecked"
    "probes read-checked $gigabits --operation read"
    "perftest read-perftest 4 ib_read_bw -s 65536 --report_gbits"
    "probes read-unchecked $gigabits --operation read --unchecked"
    "probes read-latency $median --operation read --latency --bytes 8"
    "perftest read-latency-perftest 5 ib_read_lat -s 8"
    "probes send-latency $median --operation send --bytes 8"
    "perftest send-latency-perftest 5 ib_send_lat -s 8")

# round NUMBER: all measurements, each time in a different order, because a program that runs twice in a row
# benefits from the emulator's cached translations.
round() {
    local i
    for ((i = 0; i < ${#measurements[@]}; ++i)); do
        # 3 and 10 have no common divisor, so the neighbours change as well. shellcheck disable=SC2086  # words
        ${measurements[((i * ($1 % 2 ? 3 : 7) + $1) % ${#measurements[@]})]}
    done
}

# row NAME SERIES UNIT
row() {
    printf '%-28s %10s (%s-%s) %s\n' "$1" "$(median "$samples/$2")" "$(minimum "$samples/$2")" \
        "$(maximum "$samples/$2")" "$3"
}

# over NAME SERIES SERIES: the ratio of the medians.
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
