# The Ansible collection with three hosts at once: the first is also the controller, and reaches the others over ssh. Their VMs
# stay shut off. Inventory-wide check, check mode, run, a second run, and a change for one host.
# covers: contrib/ansible lab/lib/link.sh lab/outside/other_hosts.sh
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

role=$1
declare -A numbers=([first]=1 [second]=2 [third]=3)
number=${numbers[$role]}
there() { ssh -o BatchMode=yes "root@10.98.0.$1" "${@:2}"; }

section "$role host: libvirt and a VM"
install_vfpass
load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0)
start_libvirt
expect "hook install" vfpass hook install
expect "it is connected to the other hosts" join_link "$number"
define_guest train0
echo "$pf $netdev" >"/lab/link/pf-$role"

if [ "$role" != first ]; then
    expect "the controller's key exists" wait_until 900 test -e /lab/link/key.pub
    expect "ssh is served" start_ssh_server
    touch "/lab/link/ready-$role"
    expect "the controller has finished" wait_until 3000 test -e /lab/link/done
    finish
    exit
fi

expect "an ssh key is created" make_ssh_key
expect "the other hosts are ready" wait_until 900 test -e /lab/link/ready-second -a -e /lab/link/ready-third
expect "ssh reaches the second host" there 2 true
expect "ssh reaches the third host" there 3 true
took "three hosts"

export ANSIBLE_COLLECTIONS_PATH=/vfpass/contrib/ansible ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
# Under emulation a connection and a process are slow.
export ANSIBLE_TIMEOUT=120 ANSIBLE_PIPELINING=1
vlan=(0 100 100 100)
mac_of=(0 1 2 3)

# inventory: three hosts, with the VLANs of `vlan`, and MACs by the numbers in `mac_of`.
inventory() {
    local host pf netdev roles=('' first second third)
    cat <<YAML
all:
  vars:
    ansible_user: root
    ansible_python_interpreter: /usr/bin/python3
    vfpass_reports_directory: /tmp/reports
    vfpass_reports: [status]
    vfpass_fleet:
      rails: {rail0: {network: 192.168.100.0/24}}
      tenants: {blue: {vlans: [100, 200]}}
  hosts:
YAML
    for host in 1 2 3; do
        read -r pf netdev <"/lab/link/pf-${roles[host]}"
        cat <<YAML
    host$host:
      ansible_host: 10.98.0.$host
      ansible_connection: $([ "$host" = 1 ] && echo local || echo ssh)
      vfpass_host_policy: {version: 1, pfs: [{pf: {netdev: $netdev}, virtual-function-count: 4, mtu: 9000}]}
      vfpass_vms:
        - tenant: blue
          mapping:
            version: 1
            vm: train0
            vfs:
              - {name: rail0, pf: {pci: "$pf"}, mac: "{{ ${mac_of[host]} | vfpass.vfpass.rail_mac(0) }}", vlan: {id: ${vlan[host]}}}
YAML
    done
}

play() {
    inventory >/tmp/inventory.yaml
    ansible-playbook -i /tmp/inventory.yaml vfpass.vfpass.site "$@" 2>&1 | tee /tmp/play
}

# changed: how many changed tasks Ansible counts on each host.
changed() { sed -n 's/^host\([0-9]\) .*changed=\([0-9]*\).*/\1:\2/p' /tmp/play | paste -sd ' '; }

# on HOST COMMAND: runs it where it belongs.
on() { if [ "$1" = 1 ]; then bash -c "$2"; else there "$1" "$2"; fi; }
vfs_on() { on "$1" "ls -d /sys/bus/pci/devices/$pf/virtfn* 2>/dev/null | wc -l"; }
leased() { on "$1" "vfpass status --json | jq -r '[.leases[] | .domain.name + \" \" + .entry + \" \" + .state] | join(\", \")'"; }

section "a mistake stops a run for another host"
mac_of[3]=2
refuse "two hosts with one MAC" play --limit host1
expect_contains "the mistake names both hosts" "host3, VM train0: vfpass_vms[0].mapping.vfs[0].mac: MAC 02:00:00:02:00:00 is already used by rail0 of VM train0 on host2" \
    cat /tmp/play
mac_of[3]=3
expect_equal "the first host is unchanged" 0 "$(vfs_on 1)"
took "the section"

section "check mode"
expect "check mode passes" play --check --diff
expect_equal "it reports a change on every host" "1:1 2:1 3:1" "$(changed)"
expect_contains "it shows the steps of host apply" "because host.yaml sets it" cat /tmp/play
expect_contains "it shows the values of the VF" "mac 02:00:00:03:00:00, vlan 100" cat /tmp/play
for host in 1 2 3; do
    expect_equal "host $host has no VFs" 0 "$(vfs_on "$host")"
    expect_equal "host $host has no configuration" "" "$(on "$host" 'find /etc/vfpass -name "*.yaml"')"
done
took "the section"

section "the run"
expect "the run passes" play
expect_equal "it changes every host" "1:1 2:1 3:1" "$(changed)"
for host in 1 2 3; do
    expect_equal "host $host has the VFs of host.yaml" 4 "$(vfs_on "$host")"
    expect_contains "host $host has the VF's values" "link/ether 02:00:00:0$host:00:00 brd ff:ff:ff:ff:ff:ff, vlan 100" \
        on "$host" "ip -d link show dev $netdev"
    expect_contains "the VM of host $host has the VF" "ua-vfpass-rail0" on "$host" "virsh dumpxml train0"
    expect_equal "host $host's report names the lease" "$(leased "$host")" \
        "$(jq -r '[.leases[] | .domain.name + " " + .entry + " " + .state] | join(", ")' "/tmp/reports/host$host/status.json")"
    expect_contains "host $host has the lease" "train0 rail0" leased "$host"
done
took "the section"

section "a second run, and a change for one host"
expect "the second run passes" play
expect_equal "it changes nothing" "1:0 2:0 3:0" "$(changed)"
vlan=(0 200 200 200)
expect "a run for the second host passes" play --limit host2
expect_equal "it changes this host" "2:1" "$(changed)"
expect_contains "its VF has the new VLAN" "vlan 200" on 2 "ip -d link show dev $netdev"
expect_contains "another host's VF has the old one" "vlan 100" on 3 "ip -d link show dev $netdev"
took "the section"

touch /lab/link/done
finish
