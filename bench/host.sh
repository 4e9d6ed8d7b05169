#!/bin/bash
# host.sh [RUNS]: commands that read the whole host, on the captured tree of a machine with eight H100, in interleaved runs on
# this machine, as any user; and the memory of commands on hosts of growing size and with more domains:
#
#     bench/host.sh 50
#
# "copy" copies the files of the captured tree that vfpass reads, with cp. `doctor` fails there, because
# the machine's firmware version and ACS settings do not pass.
set -euo pipefail

bench=$(cd "$(dirname "$0")" && pwd)
checkout=$(dirname "$bench")
build=${VFPASS_BUILD:-$checkout/build}
vfpass=${VFPASS:-$build/sbin/vfpass}
runs=${1:-50}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make_host() { "$checkout/tests/hosts/make_host.py" "$1" "$work/$1" >/dev/null; }
on() { echo --sysroot "$work/$1" --state-dir "$work" --config-dir "$work"; }

# snapshot DIRECTORY and copy DIRECTORY begin with an empty target.
cat >"$work/snapshot" <<SCRIPT
#!/bin/bash
rm -rf $work/target
exec $vfpass snapshot $work/target $(on h100-8)
SCRIPT
cat >"$work/copy" <<SCRIPT
#!/bin/bash
rm -rf $work/target
exec cp -a $work/captured $work/target
SCRIPT
chmod +x "$work/snapshot" "$work/copy"

make_host h100-8
"$vfpass" --sysroot "$work/h100-8" snapshot "$work/captured" >/dev/null
read -r -a host < <(on h100-8)
echo "$runs runs each, interleaved; load average $(cut -d ' ' -f 1-3 /proc/loadavg)"
"$build/bench/interleave" "$runs" /dev/null /bin/true -- ! "$vfpass" doctor "${host[@]}" -- "$work/snapshot" -- "$work/copy"

echo
echo "memory, by the number of PCI functions:"
for functions in 64 256 1024 4096; do
    make_host "functions-$functions"
    read -r -a host < <(on "functions-$functions")
    echo "$functions:"
    "$build/bench/interleave" 1 /dev/null "$vfpass" topo "${host[@]}" -- "$vfpass" topo --json "${host[@]}" -- \
        "$vfpass" vf list "${host[@]}" -- "$vfpass" pf list "${host[@]}" -- \
        "$vfpass" snapshot "$work/snapshot-$functions" "${host[@]}"
done

# libvirt's test driver with that many domains.
echo
echo "memory, by the number of domains:"
for domains in 1 10 100 1000; do
    {
        echo '<node>'
        for ((number = 0; number < domains; number++)); do
            echo "<domain type='test'><name>d$number</name><memory>1024</memory><os><type arch='i686'>hvm</type></os></domain>"
        done
        echo '</node>'
    } >"$work/node.xml"
    echo "$domains:"
    "$build/bench/interleave" 1 /dev/null "$vfpass" status --connect "test://$work/node.xml" --state-dir "$work"
done
