#!/bin/bash
# unbind.sh [ROUNDS [COUNT [AT_A_TIME...]]]: how far the driver lets the removals of several VFs overlap. It unbinds COUNT VFs from
# the host's driver, one after the other and up to AT_A_TIME together; `vfpass attach` unbinds eight together:
#
#     lab/run --cores all --machine many bench/unbind.sh 3 16 1 8
set -euo pipefail
# shellcheck source=SCRIPTDIR/../tests/lab/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/lib.sh
source /vfpass/bench/lib.sh

rounds=${1:-3} count=${2:-16}
parallels=("${@:3}")
[ ${#parallels[@]} -gt 0 ] || parallels=(1 8)
samples=$(mktemp -d) measured_log=/tmp/measured.log

# unbind AT_A_TIME: all VFs.
unbind() {
    local link
    for link in "$device"/virtfn*; do basename "$(readlink "$link")"; done |
        xargs -P "$1" -I '{}' sh -c 'echo {} >/sys/bus/pci/drivers/mlx5_core/unbind'
}

load_mlx5
pf=$(pf_address 0)
device=/sys/bus/pci/devices/$pf
for ((round = 0; round < rounds; round++)); do
    for parallel in "${parallels[@]}"; do
        make_vfs "$pf" 0
        make_vfs "$pf" "$count"
        measure unbind "$parallel"
        sample "$parallel"
    done
done

echo "unbinding $count VFs from mlx5_core, $rounds rounds, seconds: median (minimum-maximum)"
echo
echo '| at a time | seconds | times faster than the first |'
echo '|---|---|---|'
for parallel in "${parallels[@]}"; do
    printf '| %s | %s | %s |\n' "$parallel" "$(spread "$parallel")" \
        "$(ratio "$(median "$samples/${parallels[0]}.us")" "$(median "$samples/$parallel.us")")"
done
