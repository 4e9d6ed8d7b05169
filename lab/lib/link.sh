# shellcheck shell=bash disable=SC2154
# Sourced by lib.sh: several hosts under test (lab/run --hosts 2). Their links carry ssh between the hosts.

# join_link NUMBER: this host's address is 10.98.0.NUMBER.
join_link() {
    local netdev
    modprobe -a virtio_net bridge && ip link add link0 type bridge && ip link set link0 up || return
    # The first of three hosts has two links.
    for netdev in /sys/bus/virtio/drivers/virtio_net/virtio*/net/*; do
        ip link set "${netdev##*/}" master link0 up || return
    done
    ip address add "10.98.0.$1/24" dev link0
}

# start_ssh_server: lets the key in /lab/link log in as root. On a busy machine a login may take longer than the two minutes that the server allows.
start_ssh_server() {
    mkdir -p /run/sshd /root/.ssh
    ssh-keygen -q -A && cp /lab/link/key.pub /root/.ssh/authorized_keys && chmod -R go= /root/.ssh &&
        /usr/sbin/sshd -o PermitRootLogin=prohibit-password -o UsePAM=no -o LoginGraceTime=0
}

# make_ssh_key: on the host that logs in. The other host's key is accepted at the first login.
make_ssh_key() {
    mkdir -p /root/.ssh
    chmod 700 /root/.ssh
    ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519 || return
    echo 'StrictHostKeyChecking accept-new' >/root/.ssh/config
    cp /root/.ssh/id_ed25519.pub /lab/link/key.new && mv /lab/link/key.new /lab/link/key.pub
}
