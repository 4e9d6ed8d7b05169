# InfiniBand: the list of GUIDs that vfpass makes of its leases, read by the subnet manager of the model of a ConnectX (lab/connectx), brings
# the ports of leased VFs up and into their partitions. Data (ib_write_bw) and management datagrams (ibping) go between them.
# covers: lab/connectx/infiniband.c lab/connectx/subnet_manager.c src/commands/host_command.cpp src/report/host_report.cpp
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh

install_vfpass
require "the drivers load, and the InfiniBand PF has its IPoIB netdev" load_mlx5 rdma
modprobe ib_uverbs
ip link set lo up
pf=$(pf_address 1)
start_libvirt
vfpass hook install
make_vfs "$pf" 4

# On the host's driver the ports can be seen without a guest.
names=(a b c)
for index in 0 1 2; do
    define_guest "${names[index]}"
    mapping "${names[index]}" rail0 "$pf" "index: $index" 'managed: yes' 'infiniband: {node-guid: auto, port-guid: auto}'
done

rdma_of() { ls "$pci_devices/$(vf_address 1 "$1")/infiniband"; }
port_of() { echo "$pci_devices/$(vf_address 1 "$1")/infiniband/$(rdma_of "$1")/ports/1"; }
state_is() { [ "$(cat "$(port_of "$1")/state")" = "$2" ]; }
states() { for index in 0 1 2 3; do cat "$(port_of "$index")/state"; done | xargs; }
# The table of partition keys, without empty entries.
keys() { cat "$(port_of "$1")"/pkeys/{0,1,2} | grep -v 0x0000 | xargs; }
# give OPTION...: the rules of vfpass go to the subnet manager, line by line, as it reads its file.
give() {
    local rule
    vfpass host guids --format opensm "$@" >/tmp/rules || return
    while read -r rule; do card 1 partition "$rule" || return; done </tmp/rules
}
listens() { grep -q ":$(printf %04X 20000) .* 0A " /proc/net/tcp /proc/net/tcp6; }
# exchange SERVER CLIENT INDEX: data with the partition key at this index of both ports.
exchange() {
    local code
    timeout 100 ib_write_bw -d "$(rdma_of "$1")" --pkey_index "$3" -p 20000 -n 20 -s 4096 -F >/tmp/server 2>&1 &
    wait_until 30 listens &&
        timeout 100 ib_write_bw -d "$(rdma_of "$2")" --pkey_index "$3" -p 20000 -n 20 -s 4096 -F localhost
    code=$?
    [ "$code" = 0 ] || kill $!
    wait $!
    return "$code"
}

# answers SERVER CLIENT: three of three datagrams of `ibping` come back. Its server has no port to wait for.
is_answered() {
    [[ $(timeout 20 ibping -C "$(rdma_of "$2")" -f -c 3 "$(cat "$(port_of "$1")/lid")" 2>&1) == *" 3 received"* ]]
}
answers() {
    local code server
    timeout 100 ibping -S -C "$(rdma_of "$1")" >/tmp/server 2>&1 &
    server=$!
    wait_until 30 is_answered "$1" "$2"
    code=$?
    kill "$server"
    wait "$server"
    return "$code"
}

section "leases"
for name in "${names[@]}"; do expect "attach $name" vfpass attach "$name"; done
for index in 0 1 2; do expect "VF $index has an RDMA device again" wait_until 60 rdma_of "$index"; done
expect "a VF without a lease has one, too" wait_until 60 rdma_of 3
expect_equal "the list has three VFs" 4 "$(vfpass host guids --format csv | wc -l)"
expect_equal "with the port GUIDs of their RDMA devices" \
    "$(for index in 0 1 2; do sed 's/fe80:0000:0000:0000//; s/://g' "$(port_of "$index")/gids/0"; done | sort | xargs)" \
    "$(vfpass host guids --json | jq -r '.vfs[].port_guid' | tr -d : | sort | xargs)"

section "management datagrams"
require "ib_umad loads" modprobe ib_umad
expect "ibping between two VFs" answers 0 1
expect "and the other way" answers 1 0

section "a list without ports"
expect "it is given" card 1 partition none
for index in 0 1 2 3; do expect "the port of VF $index is down" wait_until 20 state_is "$index" "1: DOWN"; done
expect_equal "the card's port is active" "4: ACTIVE" "$(cat "$pci_devices/$pf"/infiniband/*/ports/1/state)"

section "the list of vfpass"
expect "libvirt stops" stop_libvirtd
expect "rules for a and b, without libvirt" give --p-key 0x8001 --vm a --vm b
for index in 0 1; do expect "the port of VF $index is active" wait_until 20 state_is "$index" "4: ACTIVE"; done
expect_equal "those of the others are down" "4: ACTIVE 4: ACTIVE 1: DOWN 1: DOWN" "$(states)"
expect_equal "they are full members of the partition" "0x7fff 0x8001 0x7fff 0x8001" "$(keys 0) $(keys 1)"
expect "rules for c" give --p-key 2 --vm c
expect "the port of VF 2 is active" wait_until 20 state_is 2 "4: ACTIVE"
expect_equal "it is in its partition" "0x7fff 0x8002" "$(keys 2)"
refuse "what is no rule is refused" card 1 partition "vfpass=0x8000 : 0x1=full ;"

section "partitions separate"
expect "data in the partition of a and b" exchange 0 1 1
refuse "limited members of the default partition do not reach each other" exchange 0 1 0
refuse "nor do members of two partitions" exchange 0 2 1
refuse "nor do management datagrams, which use the default partition" answers 0 1

section "detach"
expect "libvirt starts" restart_libvirt
expect "detach a" vfpass detach a
expect "the port of its VF is down: its GUID is in no list" wait_until 60 state_is 0 "1: DOWN"
expect_equal "the list has two VFs" 3 "$(vfpass host guids --format csv | wc -l)"
for name in b c; do expect "detach $name" vfpass detach "$name"; done
expect "no lease is left" no_lease
finish
