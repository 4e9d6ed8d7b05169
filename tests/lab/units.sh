# The units in a booted systemd, which enforces their sandboxes: mounts, system calls, capabilities, groups. libvirtd is systemd's
# too, and QEMU is not root. The unit of detach --keep is in no package, but runs here as well.
# covers: packaging/systemd packaging/tmpfiles.conf packaging/sysusers.conf src/apply/step_kinds.cpp src/report/kept_devices.cpp
# shellcheck shell=bash disable=SC2154
set -uo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source /vfpass/tests/lab/common.sh
# shellcheck source=SCRIPTDIR/verify_common.sh
source /vfpass/tests/lab/verify_common.sh

metrics=/var/lib/prometheus/node-exporter/vfpass.prom

# What a package installs, and nothing that vfpass creates when it runs.
install_units() {
    local unit
    install_vfpass
    for unit in /vfpass/build/packaging/systemd/vfpass*; do
        sed 's|/usr/local/sbin/|/usr/sbin/|' "$unit" >"/usr/lib/systemd/system/$(basename "$unit")"
    done
    install -m 644 /vfpass/packaging/sysusers.conf /usr/lib/sysusers.d/vfpass.conf
    install -m 644 /vfpass/packaging/tmpfiles.conf /usr/lib/tmpfiles.d/vfpass.conf
    systemd-sysusers vfpass.conf && systemd-tmpfiles --create vfpass.conf
    vfpass hook install
    mkdir -p "$(dirname "$metrics")"
    # Transfers under double emulation are slow.
    small verify '--pending --wait 60' && small verify@ '--wait 60' ' -- %i'
}

# small UNIT OPTIONS [REST]: a drop-in by which the unit makes small transfers.
small() {
    local directory=/etc/systemd/system/vfpass-$1.service.d
    mkdir -p "$directory"
    printf '[Service]\nExecStart=\nExecStart=/usr/sbin/vfpass verify %s --bytes 4K --iterations 16 --no-tools%s\n' "$2" "${3:-}" \
        >"$directory/small.conf"
}

if [ "${1:-}" != booted ]; then
    section "before the boot"
    require "mlx5_core loads" load_mlx5
    require "the units are installed" install_units
    run_qemu_as libvirt-qemu
    install_libvirt_configuration
    # The process that keeps KVM loaded would inherit the output port, which only one process can open.
    load_kvm >/dev/null 2>&1
    require "KVM is loaded" test -s /run/lab/kvm.pid
    # The guest's link follows the PF's.
    printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n    virtual-function-count: 3\n    up: true\n' "$(pf_address 0)" \
        >/etc/vfpass/host.yaml
    require "the units are enabled" systemctl --quiet enable vfpass-host.service vfpass-verify.path vfpass-metrics.timer
    require "there is no seal key" test ! -e /etc/vfpass/seal.key
    boot_systemd
    flunk "systemd cannot be booted"
    finish
fi

section "boot"
expect_contains "systemd is PID 1" systemd cat /proc/1/comm
pf=$(pf_address 0)
result() { systemctl show --property "$2" --value "$1"; }
# journal UNIT
journal() { journalctl --quiet --no-pager --output cat --unit "$1"; }
# starts NAME UNIT: the service ends with exit status 0.
starts() {
    expect "$1" systemctl start "$2"
    [ "$last_code" = 0 ] || journal "$2"
}
systemctl_fails() { ! systemctl "$@"; }
no_mark() { test -z "$(ls /run/vfpass/started)" && ! systemctl --quiet is-active vfpass-verify.service; }
as_member() { setpriv --reuid nobody --regid vfpass --clear-groups "$@"; }
group_reads() {
    expect_equal "$1: the group may read the state" "root:vfpass 2750" "$(stat -c '%U:%G %a' /var/lib/vfpass)"
    expect_equal "$1: and enter the runtime directory" "root:vfpass 750" "$(stat -c '%U:%G %a' /run/vfpass)"
    expect "$1: a member reads the copy of the database" as_member head -c 1 /var/lib/vfpass/vfpass-readable.db
    expect_exit 1 "$1: a member cannot open the database" as_member head -c 1 /var/lib/vfpass/vfpass.db
}

section "vfpass-host.service at boot"
expect_equal "it has applied host.yaml" success "$(result vfpass-host.service Result)"
[ "$(result vfpass-host.service Result)" = success ] || journal vfpass-host.service
expect_equal "the PF has its VFs" 3 "$(find "/sys/bus/pci/devices/$pf/" -maxdepth 1 -name 'virtfn*' | wc -l)"
expect "before libvirt started" test "$(result vfpass-host.service ActiveEnterTimestampMonotonic)" -lt \
    "$(result libvirtd.service ActiveEnterTimestampMonotonic)"
refuse "it could read the kernel log" grep "kernel log" <(journal vfpass-host.service)
expect "it needed no seal key" test ! -e /etc/vfpass/seal.key
group_reads "after the boot"
starts "vfpass-gc.service on a host without leases" vfpass-gc.service

section "VFs that the firmware does not enable"
expect "the VFs are removed" make_vfs "$pf" 0
card 0 fault ENABLE_HCA function=pf status=5 count=1
expect "vfpass-host.service is restarted and fails" systemctl_fails restart vfpass-host.service
expect_contains "the journal has the reason" "the card's firmware did not enable" journal vfpass-host.service
expect_equal "the PF has no VFs" "" "$(compgen -G "/sys/bus/pci/devices/$pf/virtfn*")"
card 0 clear
starts "without the fault it succeeds" vfpass-host.service
expect_equal "the PF has its VFs" 3 "$(find "/sys/bus/pci/devices/$pf/" -maxdepth 1 -name 'virtfn*' | wc -l)"

section "SoftRoCE links"
ip link add lab0 type dummy && ip link set lab0 up
printf 'soft-roce:\n  - {name: rxe0, netdev: lab0}\n' >>/etc/vfpass/host.yaml
starts "vfpass-soft-roce.service" vfpass-soft-roce.service
expect "the link exists" test -e /sys/class/infiniband/rxe0

section "a VM whose QEMU runs as libvirt's user"
vf=$(vf_of "$pf" 1)
# The path unit comes later, when the guest has an RDMA device.
systemctl stop vfpass-verify.path
expect "a guest is defined" define_guest train0 --rdma
mapping train0 rail0 "$pf" 'index: 1' 'guest: {mtu: 9000}' 'vlan: {id: 100}'
printf 'verify: {on-start: report}\n' >>"$vms/train0.yaml"
expect "attach" vfpass attach train0
expect "virsh start" virsh start train0
expect_contains "QEMU runs as libvirt's user" libvirt-q ps -o user= -p "$(cat /run/libvirt/qemu/train0.pid)"
group_reads "after the start"
starts "vfpass-gc.service" vfpass-gc.service
expect "the lease is kept" has_lease running
starts "vfpass-metrics.service" vfpass-metrics.service
expect_contains "the metrics have the VM" 'vm="train0"' grep vfpass_vf_info "$metrics"
expect_contains "without drift" "} 0" grep '^vfpass_lease_drift{' "$metrics"

section "a policy that a running VM contradicts"
sed -i 's/virtual-function-count: 3/virtual-function-count: 2/' /etc/vfpass/host.yaml
expect "vfpass-host.service is restarted and fails" systemctl_fails restart vfpass-host.service
expect_equal "with the exit code of a refusal" 5 "$(result vfpass-host.service ExecMainStatus)"
expect_contains "the journal has the reason" "train0" journal vfpass-host.service
expect_equal "the VF keeps its driver" vfio-pci "$(driver_of "$vf")"
sed -i 's/virtual-function-count: 2/virtual-function-count: 3/' /etc/vfpass/host.yaml
starts "with the former policy it succeeds" vfpass-host.service

section "verification"
expect "the guest's agent answers" wait_for_agent train0 400
netdev=$(guest_shell train0 'ls /sys/bus/pci/drivers/mlx5_core/0*/net')
expect_contains "the guest has an RDMA device" uverbs0 guest_shell train0 "ip link set lo up; ip link set $netdev mtu 9000 up
    ip address add 10.99.0.1/24 dev $netdev; ls /dev/infiniband"
expect "vfpass-verify.path sees the mark of the start" systemctl start vfpass-verify.path
# It can take more than 200 s where the guest has the kernel of Debian testing.
expect "it verifies the VM" wait_until 600 no_mark
expect_equal "vfpass-verify.service succeeds" success "$(result vfpass-verify.service Result)"
expect_contains "the VM has passed" "VM train0: passed" journal vfpass-verify.service
starts "vfpass-verify@train0.service" vfpass-verify@train0.service
# Their names end with the time.
document=$(cat "$(find /var/lib/vfpass/reports -type f | sort | tail -n 1)")
expect_equal "its report says so" passed "$(member .result)"
seen device-host passed "on vfio-pci, open in process"
expect_equal "the VF's counters on the PF have changed" passed "$(finding counters result)"
expect "another VM's unit fails" systemctl_fails start vfpass-verify@other.service

section "a domain that was undefined without detach"
virsh --quiet destroy train0
expect "its lease is reserved" wait_until 30 has_lease reserved
virsh --quiet undefine train0
# gc keeps the leases of a domain that a mapping names.
rm "$vms/train0.yaml"
starts "vfpass-gc.service" vfpass-gc.service
expect "the lease is released" no_lease
[ "$last_code" = 0 ] || journal vfpass-gc.service
expect_equal "the VF is without a driver again, as host.yaml creates it" "" "$(driver_of "$vf")"
expect_equal "it has no override" "(null)" "$(cat "/sys/bus/pci/devices/$vf/driver_override")"
refuse "it has no VLAN" grep "vlan" <(vf_attributes "$(netdev_of "$pf")" 1)
group_reads "at the end"

section "the unit of detach --keep"
expect "a guest is defined" define_guest kept0
mapping kept0 rail0 "$pf" 'index: 2' 'vlan: {id: 200}' 'mac: "52:54:00:77:00:02"'
expect "attach" vfpass attach kept0
vfpass --json detach --keep kept0 >/tmp/kept.json
rm "$vms/kept0.yaml"
expect "no lease" no_lease
unit=$(jq -r .kept.unit_name /tmp/kept.json)
expect_equal "the unit has the VM's name" vfs-of-kept0.service "$unit"
jq -r .kept.unit /tmp/kept.json >"/etc/systemd/system/$unit"
sed 's/^/   /' "/etc/systemd/system/$unit"
expect_equal "systemd-analyze has no complaint about it" "" \
    "$(systemd-analyze verify --man=no --recursive-errors=no "/etc/systemd/system/$unit" 2>&1 | grep -F "$unit")"
expect "systemd-analyze accepts it" systemd-analyze verify --man=no --recursive-errors=no "/etc/systemd/system/$unit"
# As a reboot leaves the PF.
expect "the VFs are removed" make_vfs "$pf" 0
expect_equal "the PF has none" "" "$(compgen -G "/sys/bus/pci/devices/$pf/virtfn*")"
systemctl daemon-reload
expect "the unit is enabled" systemctl --quiet enable "$unit"
expect_contains "it comes before libvirtd" libvirtd.service systemctl show --property Before --value "$unit"
starts "it starts" "$unit"
restored() {
    expect_equal "$1: the PF has its VFs" 3 "$(find "/sys/bus/pci/devices/$pf/" -maxdepth 1 -name 'virtfn*' | wc -l)"
    expect_contains "$1: the VF has its VLAN" "vlan 200" vf_attributes "$(netdev_of "$pf")" 2
    expect_contains "$1: the VF has its MAC" 52:54:00:77:00:02 vf_attributes "$(netdev_of "$pf")" 2
}
restored "after the unit"
expect "the VM starts without vfpass" virsh start --paused kept0
expect "no lease" no_lease
# A unit that created the VFs again would wait for the guest.
expect "the unit runs again while the VM has the VF" timeout 150 systemctl restart "$unit"
restored "after the second run"
virsh --quiet destroy kept0
finish
