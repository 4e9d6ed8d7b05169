#!/bin/bash
# scale.sh [DOMAINS...] [-- LEASES...]: measures how times grow with the number of domains and leases, in the host
# under test:
#
#     lab/run --machine scale --memory 10240 --timeout 3000 bench/scale.sh 1 10 100 -- 1 8 64
#
# Two PFs with 64 VFs each. DOMAINS is the number of defined domains (with up to 64 leases, one for each domain,
# alternating between the PFs), LEASES the number of leases of one domain. Everything is measured several times,
# next to `virsh list --all` and `true` in the same run. "reconnect" restarts libvirtd with that many running
# guests that have a VF (at most GUESTS, 16): their QEMU processes are real, their virtual CPUs stopped. shellcheck
# shellcheck disable=SC2016  # backquotes of Markdown
set -euo pipefail
# shellcheck source=SCRIPTDIR/../tests/lab/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/../tests/lab/tiny.sh
source /vfpass/tests/lab/tiny.sh
# shellcheck source=SCRIPTDIR/lib.sh
source /vfpass/bench/lib.sh

sizes=() lease_counts=() rounds=${ROUNDS:-3} most_guests=${GUESTS:-16}
while [ $# -gt 0 ] && [ "$1" != -- ]; do sizes+=("$1"); shift; done
[ $# = 0 ] || { shift; lease_counts=("$@"); }
[ ${#sizes[@]} -gt 0 ] || sizes=(1 10 100)
[ ${#lease_counts[@]} -gt 0 ] || lease_counts=(1 8 64)
samples=$(mktemp -d) measured_log=/tmp/measured.log

smaller() { echo $(($1 < $2 ? $1 : $2)); }
say() { echo "at $SECONDS s: $*" >&2; }

# series NAME COMMAND...: measures the command `rounds` times.
series() {
    local name=$1 round
    shift
    for ((round = 0; round < rounds; round++)); do
        measure "$@"
        sample "$name"
    done
}

# with_drift COMMAND...: accepts exit code 3 as well.
with_drift() { "$@" || [ $? = 3 ]; }

# hook NAME OPERATION SUBOPERATION: runs the hook as libvirt does, with the domain's XML on stdin.
hook() { /usr/sbin/vfpass-qemu-hook "$1" "$2" "$3" - <"/tmp/$1.xml"; }
start_and_stop() {
    hook "$1" prepare begin
    hook "$1" started begin
    hook "$1" release end
}

# define_up_to COUNT: defines d0 ... in one virsh run, and writes the mappings of the first 64.
defined=0
define_up_to() {
    local number
    for ((number = defined; number < $1; number++)); do
        tiny_xml "d$number" --memory 16 >"/tmp/define-d$number.xml"
        echo "define /tmp/define-d$number.xml"
    done >/tmp/define.commands
    virsh --quiet </tmp/define.commands >/dev/null
    for ((number = defined; number < $1 && number < 64; number++)); do
        mapping "d$number" rail0 "$(pf_address $((number % 2)))" "index: $((number / 2))" 'vlan: {id: 100}'
    done
    defined=$1
}

attached=0
attach_up_to() {
    for (( ; attached < $1; attached++)); do
        vfpass --quiet attach "d$attached"
    done
}

# measure_domains COUNT: measures every command with this many domains.
measure_domains() {
    local count=$1 leases
    leases=$(smaller "$count" 64)
    define_up_to "$count"
    attach_up_to $((leases - 1))
    local last=d$((leases - 1))
    series "attach-$count" attach_and_detach "$last"
    attach_up_to "$leases"
    series "status-$count" vfpass status
    series "status-one-$count" vfpass status "$last"
    series "check-$count" with_drift vfpass check
    series "gc-$count" vfpass gc
    virsh dumpxml --inactive "$last" >"/tmp/$last.xml"
    series "hook-$count" start_and_stop "$last"
    virsh dumpxml --inactive plain >/tmp/plain.xml
    series "hook-plain-$count" hook plain prepare begin
    series "virsh-$count" virsh list --all
    series "true-$count" /bin/true
    say "$count domains, $leases leases"
}
attach_and_detach() {
    vfpass --quiet attach "$1"
    vfpass --quiet detach "$1"
}

# measure_reconnect COUNT: starts guests d0 ..., then measures from the daemon's restart until it responds for all
# of them.
running=0
measure_reconnect() {
    for (( ; running < $1; running++)); do
        virsh --quiet start --paused "d$running"
    done
    series "reconnect-$1" restart_and_query "$1"
    say "reconnect of $1 guests"
}
restart_and_query() {
    restart_libvirt
    [ "$(virsh list | grep -c paused)" = "$1" ]
    virsh dumpxml "d$(($1 - 1))" >/dev/null
}

# measure_leases COUNT: measures a domain with that many VFs.
measure_leases() {
    local count=$1 number
    {
        printf 'version: 1\nvm: wide\nvfs:\n'
        for ((number = 0; number < count; number++)); do
            printf '  - {name: rail%s, pf: {pci: "%s"}, vlan: {id: 100}}\n' "$number" \
                "$(pf_address $((number % 2)))"
        done
    } >"$vms/wide.yaml"
    # The first attach also warms the caches.
    series "wide-$count" attach_and_detach wide
    vfpass --quiet attach wide
    series "wide-status-$count" vfpass status wide
    virsh dumpxml --inactive wide >/tmp/wide.xml
    series "wide-hook-$count" start_and_stop wide
    vfpass --quiet detach wide
    say "$count leases of one domain"
}

# row NAME TITLE VALUES...: median and spread of each value, and the ratio of the last median to the first.
row() {
    local name=$1 title=$2 first last value
    shift 2
    first=$1 last=${!#}
    printf '| %s |' "$title"
    for value in "$@"; do printf ' %s |' "$(spread "$name-$value")"; done
    ratio "$(median "$samples/$name-$last.us")" "$(median "$samples/$name-$first.us")"
    echo ' |'
}
head_row() {
    local what=$1 value
    shift
    printf '| %s |' "$what"
    for value in "$@"; do printf ' %s |' "$value"; done
    echo ' last / first |'
    printf '|---|'
    for value in "$@"; do printf -- '---|'; done
    echo '---|'
}

install_vfpass
load_mlx5
modprobe vfio-pci
for number in 0 1; do
    echo 0 >"/sys/bus/pci/devices/$(pf_address "$number")/sriov_drivers_autoprobe"
    make_vfs "$(pf_address "$number")" 64
done
start_libvirt
vfpass --quiet hook install
tiny_xml plain --memory 16 >/tmp/define-plain.xml
virsh --quiet define /tmp/define-plain.xml
define_tiny wide

# The domain with many VFs comes first, because the other domains use all VFs later.
for count in "${lease_counts[@]}"; do measure_leases "$count"; done
rm "$vms/wide.yaml"
for count in "${sizes[@]}"; do measure_domains "$count"; done
guest_counts=()
for count in "${sizes[@]}"; do
    guests=$(smaller "$(smaller "$count" 64)" "$most_guests")
    [[ " ${guest_counts[*]} " == *" $guests "* ]] || guest_counts+=("$guests")
done
for count in "${guest_counts[@]}"; do measure_reconnect "$count"; done

echo "seconds: median (minimum-maximum) of $rounds"
echo
head_row 'domains (leases: one each, at most 64)' "${sizes[@]}"
row true '`/bin/true`' "${sizes[@]}"
row virsh '`virsh list --all`' "${sizes[@]}"
row attach '`attach` and `detach` of one more' "${sizes[@]}"
row status '`status`' "${sizes[@]}"
row status-one '`status VM`' "${sizes[@]}"
row check '`check`' "${sizes[@]}"
row gc '`gc`' "${sizes[@]}"
row hook 'hook: prepare, started, release' "${sizes[@]}"
row hook-plain 'hook: prepare, unmanaged domain' "${sizes[@]}"
echo
head_row 'running guests with a VF each' "${guest_counts[@]}"
row reconnect 'libvirtd restart until it responds for all' "${guest_counts[@]}"
echo
head_row 'VFs of one domain' "${lease_counts[@]}"
row wide '`attach` and `detach`' "${lease_counts[@]}"
row wide-status '`status VM`' "${lease_counts[@]}"
row wide-hook 'hook: prepare, started, release' "${lease_counts[@]}"
