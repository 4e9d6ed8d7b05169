#!/bin/bash
# attach.sh [COUNT:ROUNDS...]: compares `vfpass attach` with the shell recipe, in the host under test:
#
#     lab/run --cores all --machine many --timeout 3000 bench/attach.sh 1:3 8:3 64:3
#
# In each round the recipe and vfpass take turns, and the host is reset in between. Both do the same work on a
# defined domain that is not running: VFs, five attributes each, vfio-pci, the domain's XML. The result is
# checked after each measurement.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../tests/lab/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/lib.sh
source /vfpass/bench/lib.sh

series=("$@")
[ ${#series[@]} -gt 0 ] || series=(1:3 8:3 64:3)
samples=$(mktemp -d) measured_log=/tmp/measured.log

# write_configuration COUNT: writes host.yaml and the mapping, with the same values as the recipe.
write_configuration() {
    local index
    printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    virtual-function-count: %s\n' "$pf" "$1" \
        >/etc/vfpass/host.yaml
    {
        printf 'version: 1\nvm: train0\ntopology: flat\nallow: [trust]\nvfs:\n'
        for ((index = 0; index < $1; index++)); do
            printf '  - {name: rail%s, pf: {pci: "%s"}, index: %s, ' "$index" "$pf" "$index"
            printf 'mac: "02:11:22:33:44:%02x", vlan: {id: 100}, spoof-check: true, ' "$index"
            printf 'trust: true, link-state: enable}\n'
        done
    } >"$vms/train0.yaml"
}

# reset_host none|probed COUNT: leaves no VFs, or COUNT of them bound to the host's driver.
reset_host() {
    echo 0 >"/sys/bus/pci/devices/$pf/sriov_numvfs"
    [ "$1" = none ] || make_vfs "$pf" "$2"
}

# require_done COUNT: checks that COUNT VFs are bound, configured and in the XML.
require_done() {
    local bound=(/sys/bus/pci/drivers/vfio-pci/0000:*) set_right in_xml
    set_right=$(ip -d link show dev "$netdev" | grep -c \
        'vf .*02:11:22:33:44:.*vlan 100, spoof checking on, link-state enable, trust on')
    in_xml=$(virsh dumpxml --inactive train0 | grep -c '<hostdev ')
    [ "${#bound[@]} $set_right $in_xml" = "$1 $1 $1" ] || {
        echo "bench: expected $1 VFs, found ${#bound[@]} bound, $set_right configured, $in_xml in the XML" >&2
        exit 1
    }
}

# compare CASE COUNT: runs one round of both.
compare() {
    reset_host "$1" "$2"
    measure bash /vfpass/bench/recipe.sh attach train0 "$pf" "$2"
    sample "$1-$2-recipe"
    require_done "$2"
    bash /vfpass/bench/recipe.sh detach train0 "$pf" /tmp/train0.xml
    reset_host "$1" "$2"
    measure vfpass attach --config train0
    sample "$1-$2-vfpass"
    require_done "$2"
    vfpass --quiet detach train0
}

show() {
    local name=$1-$2
    printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$2" "$1" "$3" \
        "$(spread "$name-recipe")" "$(spread "$name-vfpass")" \
        "$(ratio "$(median "$samples/$name-recipe.us")" "$(median "$samples/$name-vfpass.us")")" \
        "$(median "$samples/$name-recipe.processes")" "$(median "$samples/$name-vfpass.processes")" \
        "$(ratio "$(median "$samples/$name-recipe.processes")" "$(median "$samples/$name-vfpass.processes")")"
}

install_vfpass
load_mlx5
modprobe vfio-pci
pf=$(pf_address 0) netdev=$(pf_netdev 0)
start_libvirt
vfpass --quiet hook install
define_guest train0
settle train0
virsh dumpxml --inactive --security-info train0 >/tmp/train0.xml

for each in "${series[@]}"; do
    count=${each%:*} rounds=${each#*:}
    write_configuration "$count"
    for ((round = 0; round < rounds; round++)); do
        for case in none probed; do
            compare "$case" "$count"
            echo "at $SECONDS s: round $((round + 1)), $count VFs, initially $case:" \
                "recipe $(tail -n 1 "$samples/$case-$count-recipe.us") us," \
                "vfpass $(tail -n 1 "$samples/$case-$count-vfpass.us") us" >&2
        done
    done
done

echo "attach, seconds: median (minimum-maximum); \"probed\": the VFs exist and are bound to the host's driver"
echo
echo '| VFs | initially | rounds | recipe | vfpass | times faster | processes: recipe | vfpass | times fewer |'
echo '|---|---|---|---|---|---|---|---|---|'
for each in "${series[@]}"; do
    for case in none probed; do
        show "$case" "${each%:*}" "${each#*:}"
    done
done
