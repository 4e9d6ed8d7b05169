#!/bin/bash
# hook-devices.sh [ROUNDS [COUNT...]]: the hook of a domain with 1 and with 16 VFs compared with /bin/true, in the host
# under test:
#
#     lab/run --cores all --machine scale --timeout 1500 bench/hook-devices.sh 10 1 16
#
# "prepare" finds the devices as it needs them, and so has nothing to do. "release" resets each device. At the end: the
# hook's memory and the size of the state before and after CALLS (100) starts and stops of the first domain.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../tests/lab/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../tests/lab/tiny.sh
source /vfpass/tests/lab/tiny.sh
# shellcheck source=SCRIPTDIR/lib.sh
source /vfpass/bench/lib.sh

rounds=${1:-10}
shift || true
counts=("$@")
[ ${#counts[@]} -gt 0 ] || counts=(1 16)
calls=${CALLS:-100}
samples=$(mktemp -d) measured_log=/tmp/measured.log
hook_program=/usr/sbin/vfpass-qemu-hook

hook() { "$hook_program" "$1" "$2" "$3" - <"/tmp/$1.xml"; }

# attach_domain NAME COUNT: defines the domain with that many VFs, alternating between the PFs.
attach_domain() {
    local number
    define_tiny "$1"
    {
        printf 'version: 1\nvm: %s\nvfs:\n' "$1"
        for ((number = 0; number < $2; number++)); do
            printf '  - {name: rail%s, pf: {pci: "%s"}, vlan: {id: 100}}\n' "$number" "$(pf_address $((number % 2)))"
        done
    } >"$vms/$1.yaml"
    vfpass --quiet attach "$1"
    virsh dumpxml --inactive "$1" >"/tmp/$1.xml"
}

# one_round COUNT: prepare, once more with nothing to do, started, release.
one_round() {
    hook "d$1" prepare begin
    measure hook "d$1" prepare begin
    sample "prepare-$1"
    measure hook "d$1" started begin
    sample "started-$1"
    measure hook "d$1" release end
    sample "release-$1"
    measure hook plain prepare begin
    sample "plain-$1"
    measure /bin/true
    sample "true-$1"
}

# peak NAME OPERATION SUBOPERATION: the hook's largest resident set.
peak() {
    /vfpass/build/bench/interleave 1 "/tmp/$1.xml" "$hook_program" "$1" "$2" "$3" - | grep -o 'peak .*'
}

state_size() { du --bytes --total /var/lib/vfpass | awk 'END { print $1 }'; }

install_vfpass
load_mlx5
modprobe vfio-pci
for number in 0 1; do
    echo 0 >"/sys/bus/pci/devices/$(pf_address "$number")/sriov_drivers_autoprobe"
    make_vfs "$(pf_address "$number")" 32
done
start_libvirt
vfpass --quiet hook install
define_tiny plain
virsh dumpxml --inactive plain >/tmp/plain.xml
for count in "${counts[@]}"; do attach_domain "d$count" "$count"; done

for ((round = 0; round <= rounds; round++)); do
    for count in "${counts[@]}"; do
        one_round "$count"
    done
    [ "$round" != 0 ] || rm -f "$samples"/* # the first round warms the caches
done

echo "seconds: median (minimum-maximum) of $rounds"
echo
echo '| VFs | what | seconds | times /bin/true | processes |'
echo '|---|---|---|---|---|'
for count in "${counts[@]}"; do
    for what in true plain prepare started release; do
        name=$what-$count
        printf '| %s | %s | %s | %s | %s |\n' "$count" "$what" "$(spread "$name")" \
            "$(ratio "$(median "$samples/$name.us")" "$(median "$samples/true-$count.us")")" \
            "$(median "$samples/$name.processes")"
    done
done

first=${counts[0]}
echo
echo "before: prepare of $first: $(peak "d$first" prepare begin), state $(state_size) bytes"
hook "d$first" started begin
hook "d$first" release end
for ((call = 0; call < calls; call++)); do
    hook "d$first" prepare begin
    hook "d$first" started begin
    hook "d$first" release end
done
echo "after $calls starts and stops: prepare of $first: $(peak "d$first" prepare begin), state $(state_size) bytes"
