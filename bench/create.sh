#!/bin/bash
# create.sh [ROUNDS [COUNT...]]: making VFs by `vfpass host apply` against the bare writes to sysfs:
#
#     lab/run --machine many bench/create.sh 5 8 64
#
# "whole" is the command from its start to its end. "step" is the creation alone, from the two lines
# that -v -v prints before and after it, with their times.
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

bare() {
    echo 0 >"$device/sriov_drivers_autoprobe"
    echo "$1" >"$device/sriov_numvfs"
}

# step_us: between the lines "create ..." and "done: create ..." of the run just measured.
step_us() {
    awk '/ debug: (done: )?create / {
        split($2, t, /[:.]/)
        at[/ done: /] = ((t[1] * 60 + t[2]) * 60 + t[3]) * 1000 + t[4]
    }
    END { print (at[1] - at[0]) * 1000 }' "$measured_log"
}

again() {
    echo 0 >"$device/sriov_numvfs"
    echo 1 >"$device/sriov_drivers_autoprobe"
}

show() {
    local bare_us step whole
    bare_us=$(median "$samples/$1-bare.us") step=$(median "$samples/$1-step.us")
    whole=$(median "$samples/$1-whole.us")
    printf '| %s | %s | %s | %s | %s | %s |\n' "$1" "$(spread "$1-bare")" "$(spread "$1-step")" \
        "$(ratio "$step" "$bare_us")" "$(spread "$1-whole")" "$(ratio "$whole" "$bare_us")"
}

install_vfpass
load_standin
pf=$(pf_address 0)
device=/sys/bus/pci/devices/$pf

for ((round = 0; round < rounds; round++)); do
    for count in "${counts[@]}"; do
        printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    virtual-function-count: %s\n' "$pf" \
            "$count" >/etc/vfpass/host.yaml
        again
        measure bare "$count"
        sample "$count-bare"
        again
        : >"$measured_log"
        measure vfpass -v -v host apply
        sample "$count-whole"
        step_us >>"$samples/$count-step.us"
    done
done
again

echo "creation, $rounds rounds, seconds: median (least-most)"
echo
echo '| VFs | bare writes | step | step / bare | whole command | whole / bare |'
echo '|---|---|---|---|---|---|'
for count in "${counts[@]}"; do
    show "$count"
done
