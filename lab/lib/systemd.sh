# shellcheck shell=bash
# Sourced by lib.sh: a host under test in which systemd is PID 1. Without it, lab/image/host-init is.

# boot_systemd: ends the script's first part successfully. systemd then boots with everything that the script has set up so far,
# and the script starts again with the further argument "booted", after multi-user.target. /tmp is then empty; what is in
# /run stays, and so do loaded modules and mounts.
boot_systemd() {
    # Nothing else that is in the lab's root has to start.
    ln -sfn multi-user.target /etc/systemd/system/default.target
    systemctl --quiet mask NetworkManager.service NetworkManager-wait-online.service ssh.service systemd-networkd.service \
        getty.target apt-daily.timer apt-daily-upgrade.timer libvirt-guests.service || return
    touch /run/lab/systemd
    exit 0
}
