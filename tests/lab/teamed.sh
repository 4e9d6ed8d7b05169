# Sourced by the tests of teamed VFs. teamed_save and teamed_migration use a domain without a running guest system, whose VF is teamed. Its
# virtio interface is never driven, so QEMU keeps the VF hidden (failover_hide_primary_device), and nobody has to unplug it before the domain
# is saved or moved.
# shellcheck shell=bash

# define_teamed NAME: the domain with the standby interface ua-net0.
define_teamed() {
    cat >/tmp/standby.xml <<'XML'
<interface type='user'>
  <mac address='52:54:00:12:34:99'/>
  <model type='virtio'/>
  <teaming type='persistent'/>
  <alias name='ua-net0'/>
</interface>
XML
    define_tiny "$1" --device /tmp/standby.xml
}

# has_function NAME ADDRESS: the running domain's XML has the function of the host.
has_function() {
    local bus=${2#*:}
    virsh dumpxml "$1" | tr -d '\n' | grep -qE "<hostdev[^>]*type='pci'.*<source>[^/]*bus='0x${bus%%:*}' slot='0x${2:8:2}' function='0x${2:11:1}'"
}
