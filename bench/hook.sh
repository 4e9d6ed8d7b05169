#!/bin/bash
# hook.sh [RUNS]: compares the qemu hook for a domain that vfpass does not manage with /bin/true and with two
# dispatchers in bash, the usual one and a minimal one, on this machine, as any user:
#
#     bench/hook.sh 200
#
# The runs are interleaved. callgrind counts user-space instructions of one run each, and so does perf if the
# processor's counters are available.
set -euo pipefail

bench=$(cd "$(dirname "$0")" && pwd)
build=${VFPASS_BUILD:-$(dirname "$bench")/build}
runs=${1:-200}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The XML of a q35 domain as libvirt passes it to a hook, about 8 KiB.
domain_xml() {
    local disk
    echo "<domain type='kvm' id='1'><name>web0</name>"
    echo "  <uuid>4dea22b3-1d52-d8f3-2516-782e98ab3fa0</uuid><memory unit='KiB'>4194304</memory>"
    echo "  <vcpu placement='static'>4</vcpu>"
    echo "  <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os><devices>"
    for ((disk = 0; disk < 24; disk++)); do
        echo "    <disk type='file' device='disk'><driver name='qemu' type='qcow2'/>"
        echo "      <source file='/var/lib/libvirt/images/web0-$disk.qcow2' index='$disk'/>"
        echo "      <target dev='vd$disk' bus='virtio'/><alias name='virtio-disk$disk'/>"
        echo "      <address type='pci' domain='0x0000' bus='0x00' slot='0x04' function='0x0'/></disk>"
    done
    echo "  </devices></domain>"
}

domain_xml >"$work/domain.xml"
arguments=(web0 prepare begin -)
hook=$build/sbin/vfpass-qemu-hook helper=$bench/hook-helper.sh
builtin_helper=$bench/hook-helper-builtin.sh

echo "domain XML of $(stat -c %s "$work/domain.xml") bytes, $runs runs each, interleaved"
"$build/bench/interleave" "$runs" "$work/domain.xml" /bin/true "${arguments[@]}" -- \
    "$hook" "${arguments[@]}" -- "$helper" "${arguments[@]}" -- \
    "$builtin_helper" "${arguments[@]}"

echo "10,000 calls of the hook:"
"$build/bench/interleave" 10000 "$work/domain.xml" "$hook" "${arguments[@]}"

# callgrind NAME COMMAND...
callgrind() {
    local name=$1
    shift
    valgrind --tool=callgrind --callgrind-out-file="$work/$name" "$@" <"$work/domain.xml" \
        >/dev/null 2>"$work/$name.log"
    awk -v name="$name" '/^(summary|totals):/ { count = $2 }
        END { printf "%-24s %d instructions (callgrind, user space)\n", name, count }' "$work/$name"
}

if command -v valgrind >/dev/null; then
    callgrind true /bin/true
    callgrind vfpass-qemu-hook "$hook" "${arguments[@]}"
    # Counts only the bash process, not the processes that it starts.
    callgrind hook-helper.sh /bin/bash "$helper" "${arguments[@]}"
    callgrind hook-helper-builtin.sh /bin/bash "$builtin_helper" "${arguments[@]}"
else
    echo "instructions: not counted: valgrind is not installed"
fi

count_by_perf() {
    perf stat -x , -e instructions:u -o "$work/perf" "$@" <"$work/domain.xml" >/dev/null 2>&1 &&
        grep -q '^[0-9]' "$work/perf" && grep -o '^[0-9]*' "$work/perf"
}

if command -v perf >/dev/null && count_by_perf /bin/true >/dev/null; then
    echo "instructions by perf: /bin/true $(count_by_perf /bin/true)," \
        "hook $(count_by_perf "$hook" "${arguments[@]}")," \
        "hook-helper.sh $(count_by_perf "$helper" "${arguments[@]}")," \
        "hook-helper-builtin.sh $(count_by_perf "$builtin_helper" "${arguments[@]}")"
else
    echo "instructions by perf: not counted: the processor's counters are not available"
fi
