# Sourced by the tests of teamed VFs, with two_hosts_common.sh for those on two hosts. teamed_save and teamed_migration use a domain without a running guest system, whose VF is teamed. Its
# virtio interface is never driven, so QEMU keeps the VF hidden (failover_hide_primary_device), and nobody has to unplug it before the domain
# is saved or moved.
# shellcheck shell=bash disable=SC2034,SC2154  # two_hosts_common.sh sets $target, tests read $migration

# standby_xml TYPE [ELEMENT...]: the standby interface ua-net0.
standby_xml() {
    local type=$1
    shift
    printf '%s\n' "<interface type='$type'>" "<mac address='52:54:00:12:34:99'/>" "<model type='virtio'/>" "<teaming type='persistent'/>" \
        "<alias name='ua-net0'/>" "$@" '</interface>'
}

# define_teamed NAME: the domain with the standby interface.
define_teamed() {
    standby_xml user >/tmp/standby.xml
    define_tiny "$1" --device /tmp/standby.xml
}

# attach_on_both TYPE [ELEMENT...]: on the first of two hosts, defines the guest a, which has a system, with this standby interface on
# both hosts, and attaches its VFs.
attach_on_both() {
    standby_xml "$@" "<address type='pci' domain='0x0000' bus='0x00' slot='0x03' function='0x0'/>" >/tmp/standby.xml
    expect "a is defined" define_guest a --device /tmp/standby.xml
    settle a
    virsh dumpxml --inactive --security-info a >/tmp/a.xml
    expect "a is defined there" there 'cat >/tmp/a.xml && virsh --quiet define /tmp/a.xml' </tmp/a.xml
    expect "attach" vfpass attach a
    expect "attach there" there vfpass attach a
}

# has_team NUMBER: the failover interface of the guest a has so many below it.
has_team() { guest_shell a "test \$(ls -d /sys/class/net/*/lower_* | wc -l) = $1"; }

# start_with_team: starts the guest a; goes on when it uses its VF.
start_with_team() {
    expect "a starts" virsh --quiet start a
    expect "its agent answers" wait_for_agent a 900
    require "its VF and its twin are a team" wait_until 300 has_team 2
}

# migrate_slowly: begins a migration of the guest a, whose memory then takes a minute. $migration is its process, /tmp/migrate its output.
migrate_slowly() {
    expect "the migration is slow" virsh --quiet migrate-setspeed a 1
    timeout 600 virsh --quiet migrate --live a "$target" --migrateuri tcp://10.98.0.2 >/tmp/migrate 2>&1 &
    migration=$!
}

# migrate_fast: moves the guest a, whose memory changes faster than the lab sends it.
migrate_fast() {
    expect "the memory is sent as fast as it can be" virsh --quiet migrate-setspeed a 10000
    expect "the guest may be stopped for seconds" virsh --quiet migrate-setmaxdowntime a 5000
    expect "the guest migrates" timeout 900 virsh --quiet migrate --live a "$target" --migrateuri tcp://10.98.0.2
    expect "it is off here" wait_until 30 guest_off a
}

# has_function NAME ADDRESS: the running domain's XML has the function of the host.
has_function() {
    local bus=${2#*:}
    virsh dumpxml "$1" | tr -d '\n' | grep -qE "<hostdev[^>]*type='pci'.*<source>[^/]*bus='0x${bus%%:*}' slot='0x${2:8:2}' function='0x${2:11:1}'"
}
