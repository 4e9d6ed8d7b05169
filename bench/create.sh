#!/bin/bash
# create.sh [ROUNDS [COUNT...]]: compares creating VFs with `vfpass host apply` and with plain writes to sysfs:
#
#     lab/run --cores all --machine many bench/create.sh 5 8 64
#
# "whole" is the entire command. "step" is only the creation, from the timestamps of the two lines that -v -v
# prints before and after it.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../tests/lab/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/lib.sh
source /vfpass/bench/lib.sh

rounds=${1:-5}
shift || true
counts=("$@")
[ ${#counts[@]} -gt 0 ] || counts=(8 64)
samples=$(mktemp -d) measured_log=/tmp/measured.log

plain() {
    echo 0 >"$device/sriov_drivers_autoprobe"
    echo "$1" >"$device/sriov_numvfs"
}

# step_us: the time between the lines "create ..." and "done: create ..." of the last run.
step_us() {
    awk '/ debug: (done: )?create / {
        split($2, t, /[:.]/)
        at[/ done: /] = ((t[1] * 60 + t[2]) * 60 + t[3]) * 1000 + t[4]
    }
    END { print (at[1] - at[0]) * 1000 }' "$measured_log"
}

reset_pf() {
    echo 0 >"$device/sriov_numvfs"
    echo 1 >"$device/sriov_drivers_autoprobe"
}

show() {
    local plain_us step whole
    plain_us=$(median "$samples/$1-plain.us") step=$(median "$samples/$1-step.us")
    whole=$(median "$samples/$1-whole.us")
    printf '| %s | %s | %s | %s | %s | %s |\n' "$1" "$(spread "$1-plain")" "$(spread "$1-step")" \
        "$(ratio "$step" "$plain_us")" "$(spread "$1-whole")" "$(ratio "$whole" "$plain_us")"
}

install_vfpass
load_standin
pf=$(pf_address 0)
device=/sys/bus/pci/devices/$pf

for ((round = 0; round < rounds; round++)); do
    for count in "${counts[@]}"; do
        printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    virtual-function-count: %s\n' "$pf" \
            "$count" >/etc/vfpass/host.yaml
        reset_pf
        measure plain "$count"
        sample "$count-plain"
        reset_pf
        : >"$measured_log"
        measure vfpass -v -v host apply
        sample "$count-whole"
        step_us >>"$samples/$count-step.us"
    done
done
reset_pf

echo "creation, $rounds rounds, seconds: median (minimum-maximum)"
echo
echo '| VFs | plain writes | step | step / plain writes | whole command | whole / plain writes |'
echo '|---|---|---|---|---|---|'
for count in "${counts[@]}"; do
    show "$count"
done
