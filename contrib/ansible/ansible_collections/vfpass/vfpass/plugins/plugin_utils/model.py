"""The VFs of all hosts, read from their variables. Nothing here trusts the types of values: users wrote them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections

from .addresses import UUID, automatic_guid, automatic_mac, read_guid, read_mac

Mistake = collections.namedtuple("Mistake", "host vm key message remedy")
VM_KEYS = ("mapping", "tenant", "uuid")
FLEET_KEYS = {"rails": ("network", "mtu"), "tenants": ("vlans", "partition", "membership")}


def pf_name(selector):
    """How `pf:` names the PF: the key, and the values as text. None for `near`, which each host resolves, and for mistakes."""
    if not isinstance(selector, dict):
        return None
    if set(selector) == {"serial", "function"}:
        return "serial", "%s function %s" % (selector["serial"], selector["function"])
    if len(selector) != 1 or "near" in selector or "function" in selector:
        return None
    kind, value = next(iter(selector.items()))
    return str(kind), str(value)


class Vf:
    """One entry of `vfs:`. Addresses are None if they are automatic and the VM's UUID is unknown, or if they are invalid."""

    def __init__(self, vm, place, entry):
        self.vm, self.place, self.entry = vm, place, entry
        self.name = entry.get("name")
        self.pf = entry.get("pf") if isinstance(entry.get("pf"), dict) else {}
        self.pf_name = pf_name(self.pf)
        self.guest = entry.get("guest") if isinstance(entry.get("guest"), dict) else {}
        self.is_infiniband = isinstance(entry.get("infiniband"), dict)
        self.mac = self.node_guid = self.port_guid = None

    @property
    def vlan(self):
        """The id, or whatever text or number stands in its place."""
        vlan = self.entry.get("vlan")
        number = vlan.get("id") if isinstance(vlan, dict) else None
        return number if isinstance(number, (int, str)) else None

    def where(self, key):
        return "%s.%s" % (self.place, key)


class Vm:
    def __init__(self, host, place, item):
        self.host, self.place, self.item = host, place, item
        self.mapping = item.get("mapping") if isinstance(item.get("mapping"), dict) else {}
        self.name = self.mapping.get("vm")
        self.tenant = item.get("tenant")
        named_by_uuid = isinstance(self.name, str) and UUID.match(self.name)
        self.uuid = item.get("uuid") or (self.name if named_by_uuid else None)
        self.vfs = []

    def mistake(self, key, message, remedy):
        return Mistake(self.host, str(self.name), "%s.%s" % (self.place, key), message, remedy)


class Fleet:
    """`vms` of all hosts, `rails` and `tenants`, and the `mistakes` found while reading."""

    def __init__(self, settings):
        self.vms, self.policies, self.mistakes = [], {}, []
        self.rails, self.tenants = self._settings(settings or {})

    def vfs(self):
        return (vf for vm in self.vms for vf in vm.vfs)

    def add_mistake(self, host, vm, key, message, remedy):
        self.mistakes.append(Mistake(host, vm, key, message, remedy))

    def _settings(self, settings):
        if not isinstance(settings, dict):
            self.add_mistake("-", "-", "vfpass_fleet", "expected a mapping with rails and tenants", "see docs/fleet.md")
            return {}, {}
        found = []
        for key in settings:
            if key not in FLEET_KEYS:
                self.add_mistake("-", "-", "vfpass_fleet.%s" % key, "unknown key", "use rails or tenants")
        for part, keys in FLEET_KEYS.items():
            named = settings.get(part) or {}
            if not isinstance(named, dict):
                self.add_mistake("-", "-", "vfpass_fleet." + part, "expected a mapping of names", "see docs/fleet.md")
                named = {}
            found.append({name: self._setting("vfpass_fleet.%s.%s" % (part, name), value, keys) for name, value in named.items()})
        return found

    def _setting(self, place, value, keys):
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.add_mistake("-", "-", place, "expected a mapping", "use the keys " + ", ".join(keys))
            return {}
        for key in value:
            if key not in keys:
                self.add_mistake("-", "-", "%s.%s" % (place, key), "unknown key", "use one of " + ", ".join(keys))
        return value

    def add_host(self, host, vms, policy=None):
        if isinstance(policy, dict):
            self.policies[host] = policy
        elif policy:
            self.add_mistake(host, "-", "vfpass_host_policy", "expected the content of host.yaml", "see examples/host.yaml")
        if not isinstance(vms, list):
            self.add_mistake(host, "-", "vfpass_vms", "expected a list", "write one item with `mapping` for each VM")
            return
        for index, item in enumerate(vms):
            place = "vfpass_vms[%d]" % index
            if isinstance(item, dict) and isinstance(item.get("mapping"), dict):
                self._add_vm(Vm(host, place, item))
            else:
                self.add_mistake(host, "-", place, "expected a mapping with the key `mapping`",
                          "put the content of the VM's mapping file below `mapping`")

    def _add_vm(self, vm):
        for key in vm.item:
            if key not in VM_KEYS:
                self.mistakes.append(vm.mistake(key, "unknown key", "use one of " + ", ".join(VM_KEYS)))
        if not isinstance(vm.name, str) or not vm.name or "/" in vm.name:
            self.mistakes.append(vm.mistake("mapping.vm", "expected the VM's name or UUID", "write it as `virsh list` shows it"))
            return
        if vm.uuid is not None and not (isinstance(vm.uuid, str) and UUID.match(vm.uuid)):
            self.mistakes.append(vm.mistake("uuid", "expected a UUID, found %r" % (vm.uuid,), "run `virsh domuuid %s`" % vm.name))
            vm.uuid = None
        if vm.tenant is not None and not isinstance(vm.tenant, str):
            self.mistakes.append(vm.mistake("tenant", "expected a name", "use a name of vfpass_fleet.tenants"))
            vm.tenant = None
        entries = vm.mapping.get("vfs") or []
        if not isinstance(entries, list):
            self.mistakes.append(vm.mistake("mapping.vfs", "expected a list", "write one item for each VF"))
            entries = []
        for index, entry in enumerate(entries):
            self._add_vf(vm, "mapping.vfs[%d]" % index, entry)
        self.vms.append(vm)

    def _add_vf(self, vm, place, entry):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            self.mistakes.append(vm.mistake(place, "expected a mapping with `name` and `pf`", "see examples/"))
            return
        vf = Vf(vm, place, entry)
        if vf.is_infiniband:
            guids = entry["infiniband"]
            vf.node_guid = self._guid(vf, guids, "node-guid")
            vf.port_guid = self._guid(vf, guids, "port-guid")
        elif "teaming" not in entry:  # a teamed VF has its partner's MAC
            vf.mac = self._mac(vf)
        vm.vfs.append(vf)

    def _mac(self, vf):
        value = vf.entry.get("mac", "auto")
        if value == "auto":
            return automatic_mac(vf.vm.uuid, vf.name) if vf.vm.uuid else None
        mac = read_mac(value)
        if mac is None:
            self.mistakes.append(vf.vm.mistake(vf.where("mac"), "expected a unicast MAC address, found %r" % (value,), _quote(value)))
        return mac

    def _guid(self, vf, guids, key):
        value = guids.get(key, "auto")
        if value == "auto":
            return automatic_guid(vf.vm.uuid, vf.name, key) if vf.vm.uuid else None
        guid = read_guid(value)
        if guid is None:
            self.mistakes.append(vf.vm.mistake(vf.where("infiniband." + key),
                                               "expected a GUID other than zeros and ones, found %r" % (value,), _quote(value)))
        return guid


def _quote(value):
    # YAML 1.1 reads 02:00:00:00:00:01 without quotes as a number.
    if isinstance(value, int):
        return "put the address in quotes"
    return "use an address in quotes, or `auto`"
