# shellcheck shell=bash disable=SC2154
# Sourced by lib.sh: libvirt's daemons in the host under test.

export LIBVIRT_DEFAULT_URI=qemu:///system

# The daemon that runs QEMU: libvirtd, or with `lab/run --daemons modular` virtqemud, as on RHEL.
libvirt_daemon=$(cat /lab/control/daemon 2>/dev/null || echo libvirtd)

# run_qemu_as USER: before start_libvirt; QEMU then runs as this user, as with every distribution's package, and not as
# root. The kernel then refuses /proc/PID/fd of QEMU to a root without CAP_SYS_PTRACE.
qemu_user=''
run_qemu_as() {
    qemu_user=$1
    grep -q "^$1:" /etc/group || echo "$1:x:64055:" >>/etc/group
    grep -q "^$1:" /etc/passwd || echo "$1:x:64055:64055::/var/lib/libvirt:/bin/false" >>/etc/passwd
}

start_libvirt() {
    install_libvirt_configuration
    start_daemons
}

install_libvirt_configuration() {
    mkdir -p /etc/libvirt/hooks/qemu.d /var/log/libvirt/qemu
    cp "$lab_directory"/config/{qemu,libvirtd,virtlogd}.conf /etc/libvirt/
    # libvirt then gives the user the disks, sockets and /dev/vfio/GROUP itself.
    [ -z "$qemu_user" ] || sed -i "s/^user = .*/user = \"$qemu_user\"/; s/^group = .*/group = \"$(id -gn "$qemu_user")\"/
        s/^dynamic_ownership = .*/dynamic_ownership = 1/" /etc/libvirt/qemu.conf
    [ "$libvirt_daemon" = libvirtd ] || install_modular_daemons
    # The default network needs dnsmasq and a bridge; no test uses it.
    rm -f /etc/libvirt/qemu/networks/autostart/*
}

# Removes libvirtd, which a host with modular daemons does not have, so that nothing starts it by mistake.
install_modular_daemons() {
    local daemon
    for daemon in virtqemud virtproxyd virtnodedevd; do
        install -m 755 "$lab_build/modular/$daemon" "/usr/sbin/$daemon"
        cp "$lab_directory/config/libvirtd.conf" "/etc/libvirt/$daemon.conf"
    done
    rm -f /usr/sbin/libvirtd
}

# load_kvm: the emulated processor can run guests under KVM (lab/architectures), so that they are not emulated twice. On amd64 the agent
# is up in a quarter of the time.
load_kvm() {
    open_kvm || return
    # Without udev only root may open it.
    [ -z "$qemu_user" ] || chmod 666 /dev/kvm
}

# hold_kvm: keeps a virtual machine open that never runs. The kernel patches its scheduler's code when the first virtual
# machine is created and when the last one is destroyed (preempt_notifier_inc). During the patching there is a breakpoint
# in the code, which QEMU's emulation sometimes executes: "Oops: int3" in __schedule, which crashed a host after a few
# starts of guests. The machine has a processor because the first one without an enabled local APIC makes the kernel
# patch code as well (apic_sw_disabled); no oops was seen there.
# The requests are KVM_CREATE_VM, KVM_CREATE_IRQCHIP and KVM_CREATE_VCPU.
hold_kvm() {
    [ ! -e /run/lab/kvm.pid ] || return 0
    # No child of the test, whose `wait` would wait for it, and without its output, whose end `expect` waits for.
    (perl -MFcntl -e 'sysopen($kvm, "/dev/kvm", O_RDWR) && ($machine = ioctl($kvm, 0xAE01, 0))
        && open($vm, "+<&=", $machine) && ioctl($vm, 0xAE60, 0) && ($processor = ioctl($vm, 0xAE41, 0))
        && open($file, ">", "/run/lab/kvm.pid") && print($file "$$\n") && close($file) or die "KVM: $!\n"; sleep' \
        >/dev/null 2>/run/lab/kvm.log &)
    wait_until 30 test -s /run/lab/kvm.pid || { cat /run/lab/kvm.log >&2; return 1; }
}

# unload_kvm: makes the host look as if KVM had not been loaded.
unload_kvm() {
    local pid
    pid=$(cat /run/lab/kvm.pid)
    rm /run/lab/kvm.pid
    kill "$pid" && wait_until 10 process_gone "$pid" && modprobe -r kvm-amd
}

# KVM is loaded first, because libvirt probes QEMU's capabilities when it starts.
start_daemons() {
    load_kvm || return
    virtlogd -d || return
    [ "$libvirt_daemon" = libvirtd ] || { virtnodedevd -d && virtproxyd -d; } || return
    "$libvirt_daemon" -d || return
    wait_until "${LIBVIRT_DEADLINE:-60}" virsh list || {
        echo "start_libvirt: virsh does not answer" >&2
        return 1
    }
}

libvirt_pid() { cat "/run/$libvirt_daemon.pid"; }

# The daemon leaves its guests running.
stop_libvirtd() {
    local pid
    pid=$(libvirt_pid 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null || return 0
    wait_until 60 process_gone "$pid"
}

stop_libvirt() {
    stop_libvirtd || return
    local pid
    pid=$(cat /run/virtlogd.pid 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null || return 0
    wait_until 30 process_gone "$pid"
}

# A zombie counts as gone.
process_gone() {
    [ ! -e "/proc/$1" ] || grep -q '^State:[[:space:]]*Z' "/proc/$1/status"
}

restart_libvirt() {
    stop_libvirtd || return
    "$libvirt_daemon" -d || return
    # An attempt of its own limit, so that a daemon that answers late counts as one that does not.
    wait_until "${LIBVIRT_DEADLINE:-60}" timeout "${LIBVIRT_DEADLINE:-60}" virsh list
}

# reload_libvirt: SIGHUP, as "systemctl reload libvirtd" sends it.
reload_libvirt() { kill -HUP "$(libvirt_pid)"; }
