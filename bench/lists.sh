#!/bin/bash
# lists.sh [RUNS]: compares commands that list 256 VFs of four PFs with one `ip -d link`, in the host under test:
#
#     lab/run --cores all --machine wide --timeout 1500 bench/lists.sh 10
#
# The runs are interleaved. `--version` shows what a start of the program takes without any work. `check` compares a mapping, with
# 64 of these VFs attached, with the host.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../tests/lab/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../tests/lab/tiny.sh
source /vfpass/tests/lab/tiny.sh

runs=${1:-10}

install_vfpass
load_mlx5
for number in 0 1 2 3; do
    pf=$(pf_address "$number")
    echo 0 >"/sys/bus/pci/devices/$pf/sriov_drivers_autoprobe"
    make_vfs "$pf" 64
done
start_libvirt
define_tiny wide
{
    printf 'version: 1\nvm: wide\nvfs:\n'
    for ((number = 0; number < 64; number++)); do
        printf '  - {name: rail%s, pf: {pci: "%s"}, vlan: {id: 100}}\n' "$number" "$(pf_address $((number % 4)))"
    done
} >"$vms/wide.yaml"

vfpass --quiet attach wide
vfpass check # has to succeed below

ip -d link show >/tmp/links
[ "$(grep -c '^ *vf [0-9]' /tmp/links)" = 256 ] || { echo "bench: ip does not list 256 VFs" >&2; exit 1; }
[ "$(vfpass --json vf list | grep -c '"index"')" -ge 256 ] || { echo "bench: vfpass does not list 256 VFs" >&2; exit 1; }

/vfpass/build/bench/interleave "$runs" /dev/null "$(command -v ip)" -d link -- \
    /bin/true -- /vfpass/build/bench/empty -- /usr/sbin/vfpass --version -- /usr/sbin/vfpass pf list -- /usr/sbin/vfpass vf list -- \
    /usr/sbin/vfpass check -- \
    /usr/sbin/vfpass check "$vms/wide.yaml" -- "$(command -v virsh)" list --all
