# Sourced by tests with two hosts under test, whose $1 is this host's role (two_hosts.sh, teamed_migration.sh, teamed_migration_lost.sh,
# teamed_traffic.sh, vf_migration.sh): the first host works on the second by ssh.
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
