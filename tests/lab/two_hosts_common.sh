# Sourced by tests with two hosts under test, whose $1 is this host's role: the first host works on the second by ssh.
# shellcheck shell=bash disable=SC2034  # the tests use the variables

role=$1
declare -A numbers=([first]=1 [second]=2)
number=${numbers[$role]}
second=root@10.98.0.2
target="qemu+ssh://$second/system?no_tty=1"
there() { ssh -o BatchMode=yes "$second" "$@"; }

# link_netdev: this host's end of the link.
link_netdev() { basename /sys/bus/virtio/drivers/virtio_net/virtio*/net/*; }

# admit_first: on the second host, lets the first one in.
admit_first() {
    expect "the first host's key exists" wait_until 900 test -e /lab/link/key.pub
    expect "ssh is served" start_ssh_server
    touch /lab/link/ready
}

# serve_first SECONDS: on the second host, lets the first one in until it has finished.
serve_first() {
    admit_first
    expect "the first host has finished" wait_until "$1" test -e /lab/link/done
}

# reach_second: on the first host, once its key exists.
reach_second() {
    expect "the second host is ready" wait_until 900 test -e /lab/link/ready
    expect "ssh reaches the second host" there true
}

# state_there NAME: of the VM's leases on the second host.
state_there() { there vfpass status --json | jq -r "[.leases[] | select(.domain.name == \"$1\").state] | join(\" \")"; }

# off_there VM: whether the VM is off on the second host, and its lease returned.
off_there() { there virsh domstate "$1" | grep -q 'shut off' && test "$(state_there "$1")" = reserved; }

# sent VM: the bytes of its memory that the migration under way has sent.
sent() { virsh domjobinfo "$1" --rawstats | sed -n 's/^ *memory_processed: *//p'; }
sent_more() { test "$(sent "$1")" -gt "$2"; }

# write_state_script VM COMMAND: for whole_state_here and whole_state_there, which print what a migration that fails leaves as it was: leases,
# VFs (by COMMAND), unfinished work, the domain, and what doctor finds for it.
write_state_script() {
    cat >/lab/link/state.sh <<STATE
source /vfpass/tests/lab/common.sh
source /vfpass/lab/lib/connectx.sh
# On a busy machine libvirt may be too slow for the command's deadline.
wait_until 120 eval 'leases >/tmp/leases && test -s /tmp/leases'
cat /tmp/leases
$2
vfpass recover 2>&1
vfpass status $1
echo "status: exit code \$?"
virsh domstate $1
virsh dumpxml --inactive $1
vfpass doctor --vm $1 --json | jq -r '.findings[] | "\\(.key) \\(.subject): \\(.result)"'
STATE
}
whole_state_here() { bash /lab/link/state.sh; }
whole_state_there() { there bash /lab/link/state.sh; }
