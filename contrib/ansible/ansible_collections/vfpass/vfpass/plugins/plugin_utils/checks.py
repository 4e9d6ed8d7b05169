"""Mistakes that only show when the variables of all hosts are compared."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections
import ipaddress

from .model import Mistake, pf_name


def _place(vf):
    return "%s of VM %s on %s" % (vf.name, vf.vm.name, vf.vm.host)


def _repeated(vfs, key, value_of, what, remedy):
    """A mistake for every VF whose value an earlier one has."""
    first = {}
    for vf in vfs:
        value = value_of(vf)
        if value is None:
            continue
        earlier = first.setdefault(value, vf)
        if earlier is not vf:
            yield vf.vm.mistake(vf.where(key), "%s %s is already used by %s" % (what, value, _place(earlier)), remedy)


def addresses(fleet):
    vfs = list(fleet.vfs())
    another = "choose another address, or use `auto`"
    for found in (_repeated(vfs, "mac", lambda vf: vf.mac, "MAC", another),
                  _repeated(vfs, "infiniband.node-guid", lambda vf: vf.node_guid, "node GUID", another),
                  _repeated(vfs, "infiniband.port-guid", lambda vf: vf.port_guid, "port GUID", another)):
        for mistake in found:
            yield mistake


def vms(fleet):
    names, uuids = {}, {}
    for vm in fleet.vms:
        earlier = names.setdefault((vm.host, vm.name), vm)
        if earlier is not vm:
            yield vm.mistake("mapping.vm", "%s of this host has the same VM" % earlier.place, "combine the two mappings")
        if vm.uuid is None:
            continue
        earlier = uuids.setdefault(vm.uuid.lower(), vm)
        if earlier is not vm:
            yield vm.mistake("uuid", "UUID %s is already used by VM %s on %s" % (vm.uuid, earlier.name, earlier.host),
                             "give each VM its own UUID; after moving a VM, remove it from the other host")


def rails(fleet):
    """Entries are named after rails; a rail is one network, so everything on it agrees, and it has a PF of its own."""
    if not fleet.rails:
        return
    for vm in fleet.vms:
        names = set()
        for vf in vm.vfs:
            if vf.name not in fleet.rails:
                yield vm.mistake(vf.where("name"), "rail %s is not in vfpass_fleet.rails" % vf.name,
                                 "use one of %s, or add it there" % ", ".join(sorted(map(str, fleet.rails))))
            elif vf.name in names:
                yield vm.mistake(vf.where("name"), "the VM has rail %s twice" % vf.name, "use each rail once")
            names.add(vf.name)
    for mistake in _pfs(fleet):
        yield mistake


def _pfs(fleet):
    """On one host a rail is one PF, and a PF is one rail. Compares PFs that are named in the same way."""
    rail_of, pf_of = {}, {}
    for vf in fleet.vfs():
        if vf.name not in fleet.rails or vf.pf_name is None:
            continue
        kind, value = vf.pf_name
        pf = (vf.vm.host, kind, value)
        other = rail_of.setdefault(pf, vf)
        if other.name != vf.name:
            yield vf.vm.mistake(vf.where("pf"), "PF %s is already rail %s (VM %s)" % (value, other.name, other.vm.name),
                                "give each rail a PF of its own")
        other = pf_of.setdefault((vf.vm.host, vf.name, kind), vf)
        if other.pf_name != vf.pf_name:
            yield vf.vm.mistake(vf.where("pf"), "rail %s of this host is PF %s in VM %s" % (vf.name, other.pf_name[1], other.vm.name),
                                "use the same PF for this rail in every VM of the host")


def guests(fleet):
    """Addresses and MTUs in the guests, against the rail's network."""
    networks = {}
    for name, rail in fleet.rails.items():
        try:
            networks[name] = ipaddress.ip_network(str(rail["network"])) if "network" in rail else None
        except ValueError as error:
            yield Mistake("-", "-", "vfpass_fleet.rails.%s.network" % name, str(error), "use a network such as 192.168.100.0/24")
    used = {}
    for vf in fleet.vfs():
        for mistake in _guest(fleet, vf, networks.get(vf.name), used):
            yield mistake


def _guest(fleet, vf, network, used):
    mtu = fleet.rails.get(vf.name, {}).get("mtu")
    # Without `guest:` the guest is configured by other means.
    if mtu is not None and vf.guest and vf.guest.get("mtu") != mtu:
        yield vf.vm.mistake(vf.where("guest.mtu"), "expected the rail's MTU %s, found %s" % (mtu, vf.guest.get("mtu", "none")),
                            "use the same MTU on the whole rail")
    if "address" not in vf.guest:
        return
    try:
        address = ipaddress.ip_interface(str(vf.guest["address"]))
    except ValueError as error:
        yield vf.vm.mistake(vf.where("guest.address"), str(error), "use an address such as 192.168.100.10/24")
        return
    if network is not None and address.network != network:
        yield vf.vm.mistake(vf.where("guest.address"), "%s is not in the rail's network %s" % (address, network),
                            "choose an address of this network, with its prefix length")
    # Tenants with VLANs of their own may use the same addresses.
    key = (address.ip, None if vf.is_infiniband else vf.vlan, vf.vm.tenant)
    earlier = used.setdefault(key, vf)
    if earlier is not vf:
        yield vf.vm.mistake(vf.where("guest.address"), "address %s is already used by %s" % (address.ip, _place(earlier)),
                            "choose another address")


def tenants(fleet):
    """A VLAN or partition belongs to one tenant; VFs use their tenant's."""
    for mistake in _shared(fleet):
        yield mistake
    if not fleet.tenants:
        return
    for vm in fleet.vms:
        if vm.tenant is None or vm.tenant not in fleet.tenants:
            what = "no tenant" if vm.tenant is None else "tenant %s is not in vfpass_fleet.tenants" % vm.tenant
            yield vm.mistake("tenant", what, "use one of %s" % ", ".join(sorted(map(str, fleet.tenants))))
            continue
        allowed = _vlans(fleet.tenants[vm.tenant])
        for vf in vm.vfs:
            if not vf.is_infiniband and allowed and vf.vlan not in allowed:
                yield vm.mistake(vf.where("vlan"), "VLAN %s is not one of tenant %s" % ("none" if vf.vlan is None else vf.vlan, vm.tenant),
                                 "use one of %s" % ", ".join(map(str, allowed)))


def _vlans(tenant):
    vlans = tenant.get("vlans")
    return vlans if isinstance(vlans, list) else []


def _shared(fleet):
    owners = {}
    for name, tenant in fleet.tenants.items():
        place = "vfpass_fleet.tenants.%s." % name
        if not isinstance(tenant.get("vlans", []), list):
            yield Mistake("-", "-", place + "vlans", "expected a list", "write the VLAN ids in brackets")
        if tenant.get("membership", "full") not in ("full", "limited"):
            yield Mistake("-", "-", place + "membership", "expected full or limited", "see docs/fleet.md")
        for vlan in _vlans(tenant):
            if isinstance(vlan, bool) or not isinstance(vlan, int) or not 1 <= vlan <= 4094:
                yield Mistake("-", "-", place + "vlans", "expected VLAN ids from 1 to 4094, found %r" % (vlan,), "correct the id")
            elif owners.setdefault(("VLAN", vlan), name) != name:
                yield Mistake("-", "-", place + "vlans", "VLAN %d is already used by tenant %s" % (vlan, owners["VLAN", vlan]),
                              "give each tenant VLANs of its own")
        key = tenant.get("partition")
        if key is None:
            continue
        # The highest bit is the membership; 0x7fff is the default partition, which every port belongs to.
        if isinstance(key, bool) or not isinstance(key, int) or not 1 <= key & 0x7fff < 0x7fff or not 0 < key <= 0xffff:
            yield Mistake("-", "-", place + "partition", "expected a P_Key from 0x0001 to 0x7ffe, found %r" % (key,), "correct the key")
        elif owners.setdefault(("P_Key", key & 0x7fff), name) != name:
            yield Mistake("-", "-", place + "partition", "P_Key 0x%04x is already used by tenant %s"
                          % (key & 0x7fff, owners["P_Key", key & 0x7fff]), "give each tenant a partition of its own")


def capacity(fleet):
    """VF numbers, and the numbers of VFs in host.yaml. Compares PFs that are named in the same way."""
    taken, count = {}, collections.Counter()
    for vf in fleet.vfs():
        if vf.pf_name is None:
            continue
        pf = (vf.vm.host,) + vf.pf_name
        count[pf] += 1
        index = vf.entry.get("index", "auto")
        if isinstance(index, int):
            earlier = taken.setdefault(pf + (index,), vf)
            if earlier is not vf:
                yield vf.vm.mistake(vf.where("index"), "VF %s of PF %s is already used by %s" % (index, pf[2], _place(earlier)),
                                    "choose another number, or use `auto`")
    for host, policy in fleet.policies.items():
        pfs = policy.get("pfs")
        for index, entry in enumerate(pfs if isinstance(pfs, list) else []):
            for mistake in _too_many(host, index, entry, count):
                yield mistake


def _too_many(host, index, entry, count):
    pf = pf_name(entry.get("pf")) if isinstance(entry, dict) else None
    vfs = entry.get("virtual-function-count") if isinstance(entry, dict) else None
    if pf is None or not isinstance(vfs, int):
        return
    value, used = pf[1], count[(host,) + pf]
    if used > vfs:
        yield Mistake(host, "-", "vfpass_host_policy.pfs[%d].virtual-function-count" % index,
                      "the VMs of this host use %d VFs of PF %s, but it gets %d" % (used, value, vfs),
                      "raise the number, or use another PF")


def mistakes(fleet):
    """All of them, in the order of hosts."""
    found = list(fleet.mistakes)
    for check in (addresses, vms, rails, guests, tenants, capacity):
        found.extend(check(fleet))
    return found
