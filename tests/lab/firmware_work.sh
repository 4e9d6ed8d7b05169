# Sourced by the tests in which the card's firmware fails: installs vfpass on a host with the domain v, which is mapped to a VF of
# the card's first PF, and defines the kinds of work that change this PF.
# shellcheck shell=bash disable=SC2154  # of lab/lib
export LC_ALL=C
card_log=/lab/control/pf0.log

install_vfpass
require "mlx5_core loads" load_mlx5
pf=$(pf_address 0) netdev=$(pf_netdev 0) directory=/sys/bus/pci/devices/$(pf_address 0)
# VFs are bound to mlx5_core only where a kind of work needs it: a probe takes seconds here.
echo 0 >"$directory/sriov_drivers_autoprobe"
start_libvirt
expect "hook install" vfpass hook install
expect "the domain is defined" define_tiny v
mapping v rail0 "$pf" 'index: 0' 'mac: 02:00:00:00:0a:01' 'vlan: {id: 11}' 'spoof-check: true' 'trust: true' \
    'link-state: enable' 'rate: {max: 1000}'
echo 'allow: [trust]' >>"$vms/v.yaml"

# policy LINE...: writes host.yaml with this PF.
policy() {
    printf 'version: 1\npfs:\n  - pf: {pci: "%s"}\n' "$pf" >/etc/vfpass/host.yaml
    printf '    %s\n' "$@" >>/etc/vfpass/host.yaml
}

start() { virsh --quiet start --paused v; }
# libvirt has called the hook when this returns.
stop() { virsh --quiet destroy v; }

# stored_leases: what the database has, without the time that `vfpass status` takes here.
stored_leases() {
    python3 -ES -c 'import sqlite3
database = sqlite3.connect("file:/var/lib/vfpass/vfpass.db?mode=ro", uri=True)
for table, columns in ("leases", "vf_name, pf, vf_index, state"), ("operations", "kind, domain_name"):
    for row in database.execute(f"SELECT {columns} FROM {table} ORDER BY 1"):
        print(table, *row)' || echo "unreadable at $EPOCHREALTIME" # equal to no other state
}

# orders: gives the card the orders of the standard input, one per line, as lab/connectx/control does with one.
orders() {
    perl -e 'open($config, "+<", shift) or die; while (<STDIN>) {
        sysseek($config, 1032, 0) && syswrite($config, $_) && sysseek($config, 1032, 0) && sysread($config, $reply, 504) or die;
        die "$_: $reply\n" if $reply =~ /^error/ }' "$directory/config"
}

# state FILE: what has to be the old or the new one. The generation of a lease counts the attaches.
state() {
    local link
    {
        echo "VFs: $(<"$directory/sriov_numvfs"), autoprobe $(<"$directory/sriov_drivers_autoprobe")"
        # Without its index: a netdev that mlx5 has made again has another one.
        ip -d link show dev "$netdev" | grep -E '^ +vf | mtu ' | sed -E 's/^[0-9]+: //'
        # Without the inline mode: after a change that failed, mlx5 reports another one than before, though the mode is the old one.
        devlink -j dev eswitch show "pci/$pf" | jq -r '.dev[].mode'
        for link in "$directory"/virtfn*; do
            [ ! -e "$link" ] || echo "${link##*/}: $(readlink "$link/driver") $(<"$link/driver_override")"
        done
        virsh domstate v
        virsh dumpxml --inactive v | sed -E -e 's/"generation":[0-9]+,//' -e 's/ seal=("[^"]*"|'"'[^']*'"')//'
        stored_leases
    } >"$1" 2>&1
}

# scratch: no VFs, no lease, legacy mode, no host.yaml.
scratch() {
    card 0 clear >/dev/null
    virsh --quiet destroy v
    vfpass recover
    vfpass detach v
    echo 0 >"$directory/sriov_numvfs"
    devlink dev eswitch set "pci/$pf" mode legacy
    rm -f /etc/vfpass/host.yaml
    echo 0 >"$directory/sriov_drivers_autoprobe"
} >/tmp/scratch.log 2>&1

# Each kind of work: setup_X makes the old state from scratch, do_X is the work, undo_X makes the old state from the new one.

# attach creates the VF; detach removes it.
setup_create() { :; }
do_create() { vfpass attach v; }
undo_create() { vfpass detach v; }
setup_remove() { vfpass attach v; }
do_remove() { vfpass detach v; }
undo_remove() { vfpass attach v; }

# attach takes the VF from mlx5_core; detach gives it back.
setup_unbind() {
    make_vfs "$pf" 1 && ip link set dev "$netdev" vf 0 mac 02:00:00:00:0b:02 vlan 12 &&
        bind_to "$(vf_of "$pf" 0)" mlx5_core && echo >"$directory/virtfn0/driver_override"
}
do_unbind() { vfpass attach v; }
undo_unbind() { vfpass detach v; }
setup_rebind() { setup_unbind && vfpass attach v; }
do_rebind() { vfpass detach v; }
# A VF that mlx5_core drives without a netdev could be anybody's, so attach refuses it until it is bound again.
undo_rebind() {
    local vf
    vf=$(vf_of "$pf" 0)
    if [ -z "$(netdev_of "$vf")" ]; then bind_to "$vf" mlx5_core && echo >"$directory/virtfn0/driver_override"; fi
    vfpass attach v
}

# The hook configures the VF at the start, and cleans it after the stop.
setup_start() { vfpass attach v && start && stop; }
do_start() { start; }
undo_start() { stop; }
setup_stop() { vfpass attach v && start; }
do_stop() { stop; }
undo_stop() { start; }

# The hook creates the VFs, which did not survive a reboot.
setup_start_without_vfs() { vfpass attach v && echo 0 >"$directory/sriov_numvfs"; }
do_start_without_vfs() { start; }
undo_start_without_vfs() { stop && echo 0 >"$directory/sriov_numvfs"; }

# host apply: another count with attributes that stay, and another eswitch mode.
setup_count() {
    make_vfs "$pf" 1 && ip link set dev "$netdev" vf 0 mac 02:00:00:00:0b:02 vlan 12 trust on && policy 'virtual-function-count: 2'
}
do_count() { vfpass host apply; }
undo_count() {
    policy 'virtual-function-count: 1' && vfpass host apply && policy 'virtual-function-count: 2'
}
setup_mode() { make_vfs "$pf" 1 && policy 'embedded-switch-mode: switchdev'; }
do_mode() { vfpass host apply; }
undo_mode() {
    policy 'embedded-switch-mode: legacy' && vfpass host apply && policy 'embedded-switch-mode: switchdev'
}

# from_scratch WORK: sets up the old state.
from_scratch() {
    scratch
    "setup_$1"
}

# Read in the background, too, or by every look at the VFs.
background='ACCESS_REG|QUERY_Q_COUNTER|QUERY_VPORT_COUNTER'

log_length() { wc -l <"$card_log"; }

# commands_since LINE [TEXT]: "FUNCTION COMMAND" for each command in the card's log after the line, or each whose line has TEXT.
commands_since() {
    tail -n "+$(($1 + 1))" "$card_log" | grep -F -- "${2:- }" |
        awk '$2 != "-" { sub(":.*", "", $3); print $2, $3 }' | grep -vE " ($background)$" | sort -u
}

same() { cmp -s "/tmp/state.$1" /tmp/state.now; }

# has_clear_error TEXT: it names the card, by address or netdev.
has_clear_error() { grep -qE "${pf%.*}|$netdev" <<<"$1"; }

# is_one_of_both: sets result to old, new or neither.
is_one_of_both() {
    state /tmp/state.now
    result=neither
    if same old; then result=old; elif same new; then result=new; fi
    [ "$result" != neither ]
}

# verdict TITLE: of a work with the exit code $code and the output $said, after `recover` with $recovered.
verdict() {
    if is_one_of_both && [ "$recovered" = 0 ] && { [ "$code" = 0 ] || has_clear_error "$said"; } &&
        { [ "$code" != 0 ] || [ "$result" = new ]; } && [[ " 0 1 5 " == *" $code "* ]]; then
        pass "$1: exit code $code, the $result state"
        [ "$code" = 0 ] || echo "     | ${said//$'\n'/$'\n'     | }"
    else
        last_output=$said$'\n'$(diff "/tmp/state.$([ "$code" = 0 ] && echo new || echo old)" /tmp/state.now)
        flunk "$1: exit code $code, recover $recovered, the state is: $result"
    fi
}

# attempt WORK: does it and recovers. Sets code, said and recovered.
attempt() {
    capture "do_$1"
    code=$last_code said=$last_output
    recovered=0
}

# recover_once: adds to said.
recover_once() {
    capture vfpass recover
    recovered=$last_code said+=$'\n'"recover: exit code $last_code: $last_output"
}

# both_states WORK: notes the state before and after the undisturbed work, and makes the old one again.
both_states() {
    from_scratch "$1"
    state /tmp/state.old
    "do_$1" >/tmp/work.log 2>&1
    state /tmp/state.new
    "undo_$1" >/tmp/undo.log 2>&1
}

# finish_firmware_test: a soft lockup only shows that this machine is busy.
finish_firmware_test() {
    expect_equal "the kernel has not crashed" "" "$(dmesg | grep -E 'BUG:|Oops|general protection|hung task' | grep -v 'soft lockup')"
    finish
}
