#!/bin/bash
# topo.sh [ROUNDS [FUNCTIONS...]]: compares `vfpass topo` on generated hosts with other tools on the same tree, in
# interleaved rounds, for few to many PCI functions. Needs pciutils and hwloc-nox; run it from a checkout that has
# been built.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(dirname "$here")
vfpass=${VFPASS:-$checkout/build/sbin/vfpass}
rounds=${1:-5}
shift || true
sizes=("${@:-64}")
[ $# -gt 0 ] || sizes=(64 256 1024 4096)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
samples=$work/samples
measured_log=$work/log
mkdir "$samples"
# shellcheck source=bench/lib.sh
. "$here/lib.sh"

# The usual script's method: for each GPU and each NIC, the length of the common prefix of their device paths.
near_script() {
    local bus=$1/sys/bus/pci/devices function class gpus=() nics=() gpu nic path other common
    for function in "$bus"/*; do
        read -r class <"$function/class"
        case $class in
        0x03*) gpus+=("$function") ;;
        0x02*) [ -e "$function/physfn" ] || nics+=("$function") ;;
        esac
    done
    for gpu in "${gpus[@]}"; do
        path=$(readlink -f "$gpu")
        for nic in "${nics[@]}"; do
            other=$(readlink -f "$nic")
            common=$(printf '%s\n%s\n' "$path" "$other" | sed -e 'N;s/^\(.*\/\).*\n\1.*$/\1/')
            echo "$gpu $nic ${#common}"
        done
    done
}

# It starts three processes for each pair, so it runs for one round only, and not on large hosts.
near_is_wanted() {
    [ "$1" != near ] || { [ "$2" = 1 ] && [ "$3" -le 1024 ]; }
}

for size in "${sizes[@]}"; do
    "$checkout/tests/hosts/make_host.py" "functions-$size" "$work/$size"
    pci=(lspci -A linux-sysfs -O "sysfs.path=$work/$size/sys/bus/pci")
    for ((round = 0; round <= rounds; ++round)); do # the first round warms the cache
        for series in matrix tree json lspci-tv lspci-vv lstopo near; do
            near_is_wanted "$series" "$round" "$size" || continue
            case $series in
            matrix | tree | json) measure "$vfpass" --sysroot "$work/$size" topo --format "$series" ;;
            lspci-tv) measure "${pci[@]}" -tv ;;
            lspci-vv) measure "${pci[@]}" -vv ;;
            lstopo) HWLOC_FSROOT=$work/$size HWLOC_THISSYSTEM=0 measure lstopo --of console --whole-io ;;
            near) measure near_script "$work/$size" ;;
            esac
            [ "$round" = 0 ] || sample "$size-$series"
        done
    done
done

echo "| functions | what | seconds | times topo's matrix |"
echo "|---|---|---|---|"
for size in "${sizes[@]}"; do
    base=$(median "$samples/$size-matrix.us")
    for series in matrix tree json lspci-tv lspci-vv lstopo near; do
        [ -e "$samples/$size-$series.us" ] || continue
        echo "| $size | $series | $(spread "$size-$series") |" \
            "$(ratio "$(median "$samples/$size-$series.us")" "$base") |"
    done
done
