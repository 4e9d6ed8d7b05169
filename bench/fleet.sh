#!/bin/bash
# fleet.sh [HOSTS [ROUNDS]]: time and peak memory of the collection's check of a generated inventory, and of the files for the
# subnet manager, compared with `ansible-inventory --list` and with a playbook that evaluates one variable, on the same
# inventory, in interleaved rounds. Each host has one VM with four Ethernet and four InfiniBand VFs. Needs ansible-core.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(dirname "$here")
hosts=${1:-1000}
rounds=${2:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The addresses are literal in half of the hosts; the others have templates with the filters.
make_inventory() {
    python3 -B - "$hosts" >"$work/inventory.json" <<'PYTHON'
import json
import sys

def vf(host, rail):
    entry = {"name": f"rail{rail}", "pf": {"pci": f"0000:{0x10 + rail:02x}:00.0"}}
    template = "{{ %d | vfpass.vfpass.rail_%s }}"
    if rail < 4:
        literal = f"02:00:{host >> 8:02x}:{host & 255:02x}:{rail:02x}:00"
        address = f"10.{rail}.{host >> 8}.{host & 255}/16"
        return {**entry, "mac": template % (host, f"mac({rail})") if host % 2 else literal, "vlan": {"id": 100 + host % 10},
                "guest": {"address": address, "mtu": 9000}}
    literal = f"02:00:{host >> 8:02x}:{host & 255:02x}:{rail:02x}:00:00:0"
    return {**entry, "infiniband": {role + "-guid": template % (host, f"guid({rail}, role='{role}')") if host % 2 else literal + digit
                                    for role, digit in (("node", "1"), ("port", "2"))}}

rails = {f"rail{rail}": {"network": f"10.{rail}.0.0/16", "mtu": 9000} if rail < 4 else {} for rail in range(8)}
tenants = {f"tenant{number}": {"vlans": [100 + number], "partition": 0x1000 + number} for number in range(10)}
policy = {"version": 1, "pfs": [{"pf": {"pci": f"0000:{0x10 + rail:02x}:00.0"}, "virtual-function-count": 8} for rail in range(8)]}
hosts = {f"host{host:05d}": {"vfpass_host_policy": policy, "vfpass_vms": [
    {"tenant": f"tenant{host % 10}", "mapping": {"version": 1, "vm": f"train{host}", "vfs": [vf(host, rail) for rail in range(8)]}}]}
    for host in range(1, int(sys.argv[1]) + 1)}
print(json.dumps({"all": {"vars": {"vfpass_fleet": {"rails": rails, "tenants": tenants}, "ansible_connection": "local"}, "hosts": hosts}}))
PYTHON
}

playbook() {
    printf -- '- hosts: all\n  gather_facts: false\n  tasks:\n    - %s\n      run_once: true\n' "$2" >"$work/$1.yml"
}

# run NAME COMMAND...: records wall time in seconds and peak memory in KiB, of the largest process.
run() {
    local name=$1
    shift
    /usr/bin/time -f '%e %M' -o "$work/time" "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
    cat "$work/time" >>"$work/$name.samples"
}

# median NAME COLUMN
median() { awk -v column="$2" '{ print $column }' "$work/$1.samples" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

report() {
    local name=$1 seconds memory
    seconds=$(median "$name" 1) memory=$(median "$name" 2)
    awk -v name="$name" -v s="$seconds" -v m="$memory" -v s0="$(median inventory-list 1)" -v m0="$(median inventory-list 2)" \
        'BEGIN { printf "%-16s %8.2f s %6.2f  %7.1f MiB %6.2f\n", name, s, s / s0, m / 1024, m / m0 }'
}

make_inventory
playbook one-variable 'ansible.builtin.debug: {msg: "{{ vfpass_vms | length }}"}'
playbook fleet-check 'vfpass.vfpass.fleet_check:'
playbook subnet-manager "vfpass.vfpass.subnet_manager: {directory: $work/files}"
export ANSIBLE_COLLECTIONS_PATH=$checkout/contrib/ansible ANSIBLE_HOME=$work/home ANSIBLE_LOCAL_TEMP=$work/home
export PYTHONDONTWRITEBYTECODE=1
for ((round = 0; round < rounds; round++)); do
    run inventory-list ansible-inventory -i "$work/inventory.json" --list
    for name in one-variable fleet-check subnet-manager; do
        rm -rf "$work/files"
        run "$name" ansible-playbook -i "$work/inventory.json" "$work/$name.yml"
    done
done
echo "$hosts hosts, $rounds rounds, median; ratios to ansible-inventory --list; load average $(cut -d ' ' -f 1-3 /proc/loadavg)"
for name in inventory-list one-variable fleet-check subnet-manager; do
    report "$name"
done
echo "port GUIDs written: $(wc -l <"$work/files/port-guids.txt")"
