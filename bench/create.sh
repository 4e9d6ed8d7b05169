#!/bin/bash
# create.sh [ROUNDS [COUNT...]]: compares creating VFs with `vfpass host apply` and with plain writes to sysfs:
#
#     lab/run --cores all --machine many bench/create.sh 5 8 64
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

reset_pf() {
    echo 0 >"$device/sriov_numvfs"
    echo 1 >"$device/sriov_drivers_autoprobe"
}

show() {
    local plain_us whole
    plain_us=$(median "$samples/$1-plain.us") whole=$(median "$samples/$1-whole.us")
    printf '| %s | %s | %s | %s |\n' "$1" "$(spread "$1-plain")" "$(spread "$1-whole")" "$(ratio "$whole" "$plain_us")"
}

install_vfpass
load_mlx5
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
        measure vfpass host apply
        sample "$count-whole"
    done
done
reset_pf

echo "creation, $rounds rounds, seconds: median (minimum-maximum)"
echo
echo '| VFs | plain writes | vfpass host apply | times plain writes |'
echo '|---|---|---|---|'
for count in "${counts[@]}"; do
    show "$count"
done
