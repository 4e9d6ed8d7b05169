"""Mistakes that the collection finds in the variables of all hosts, each with host, VM, key and remedy."""

import unittest

from fleet_data import UUID, fleet_of, item, vf
from ansible_collections.vfpass.vfpass.plugins.plugin_utils import addresses
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.checks import mistakes

MAC = "02:00:00:01:00:00"
OTHER_UUID = "11111111-1111-4222-8333-944455566677"
RAILS = {"rails": {"rail0": {"network": "192.168.100.0/24", "mtu": 9000}, "rail1": {}}}
GUEST = {"address": "192.168.100.10/24", "mtu": 9000}


def infiniband(node, port, **keys):
    return vf(infiniband={"node-guid": node, "port-guid": port}, **keys)


class Checks(unittest.TestCase):
    def found(self, hosts, settings=None, policies=None):
        return mistakes(fleet_of(hosts, settings, policies))

    def one(self, *arguments, **named):
        found = self.found(*arguments, **named)
        self.assertEqual(1, len(found), found)
        self.assertTrue(found[0].remedy)
        return found[0]

    def test_accepts_a_sound_fleet(self):
        hosts = {"host%d" % number: [item(vf(mac=addresses.rail_mac(number, 0), vlan={"id": 100},
                                             guest={"address": "192.168.100.%d/24" % number, "mtu": 9000}), tenant="blue")]
                 for number in range(1, 4)}
        self.assertEqual([], self.found(hosts, {**RAILS, "tenants": {"blue": {"vlans": [100], "partition": 0x1001}}}))

    def test_finds_mac_of_another_host(self):
        mistake = self.one({"a": [item(vf(mac=MAC))], "b": [item(vf(mac=MAC.upper().replace(":", "-")), vm="train1")]})
        self.assertEqual(("b", "train1", "vfpass_vms[0].mapping.vfs[0].mac"), mistake[:3])
        self.assertIn("already used by rail0 of VM train0 on a", mistake.message)

    def test_finds_mac_that_another_vm_gets_automatically(self):
        automatic = addresses.automatic_mac(UUID, "rail0")
        mistake = self.one({"a": [item(vf(), uuid=UUID)], "b": [item(vf(mac=automatic))]})
        self.assertIn(automatic, mistake.message)

    def test_finds_mac_that_yaml_read_as_a_number(self):
        self.assertEqual("put the address in quotes", self.one({"a": [item(vf(mac=190))]}).remedy)

    def test_finds_guids_of_another_host(self):
        hosts = {"a": [item(infiniband("0x02000000000000aa", "0x02000000000000ab"))],
                 "b": [item(infiniband("02:00:00:00:00:00:00:aa", "0200:0000:0000:00ab"))]}
        self.assertEqual(["vfpass_vms[0].mapping.vfs[0].infiniband.node-guid", "vfpass_vms[0].mapping.vfs[0].infiniband.port-guid"],
                         [mistake.key for mistake in self.found(hosts)])

    def test_finds_zero_guid(self):
        self.assertIn("port-guid", self.one({"a": [item(infiniband("auto", "0x" + "0" * 16))]}).key)

    def test_permits_the_same_vm_name_on_two_hosts(self):
        self.assertEqual([], self.found({"a": [item(vf())], "b": [item(vf())]}))

    def test_finds_uuid_on_two_hosts(self):
        found = self.found({"a": [item(vf(), uuid=UUID)], "b": [item(vf(name="rail1"), uuid=UUID.upper())]})
        self.assertEqual([("b", "vfpass_vms[0].uuid")], [(mistake.host, mistake.key) for mistake in found])

    def test_finds_vm_twice_on_one_host(self):
        self.assertEqual("combine the two mappings", self.one({"a": [item(vf()), item(vf())]}).remedy)

    def test_finds_unknown_rail(self):
        self.assertIn("rail7 is not in", self.one({"a": [item(vf(name="rail7"))]}, RAILS).message)

    def test_finds_rails_that_share_a_pf(self):
        self.assertIn("already rail rail0", self.one({"a": [item(vf("rail0", guest=GUEST), vf("rail1"))]}, RAILS).message)

    def test_finds_rail_with_two_pfs(self):
        second = {"name": "rail1", "pf": {"pci": "0000:5e:00.0"}}
        third = {"name": "rail1", "pf": {"pci": "0000:5f:00.0"}}
        self.assertIn("0000:5e:00.0", self.one({"a": [item(second), item(third, vm="b")]}, RAILS).message)
        self.assertEqual([], self.found({"a": [item(second)], "b": [item(third)]}, RAILS))

    def test_finds_guest_outside_the_rails_network(self):
        for address in ("192.168.101.10/24", "192.168.100.10/16", "192.168.100.300/24"):
            mistake = self.one({"a": [item(vf(guest={"address": address, "mtu": 9000}))]}, RAILS)
            self.assertIn("guest.address", mistake.key)

    def test_finds_another_mtu(self):
        self.assertIn("9000", self.one({"a": [item(vf(guest={"address": "192.168.100.10/24", "mtu": 1500}))]}, RAILS).message)

    def test_finds_repeated_guest_address_unless_vlans_differ(self):
        def hosts(vlan):
            return {"a": [item(vf(guest=GUEST, vlan={"id": 100}))], "b": [item(vf(guest=GUEST, vlan={"id": vlan}))]}
        self.assertIn("192.168.100.10", self.one(hosts(100), RAILS).message)
        self.assertEqual([], self.found(hosts(200), RAILS))

    def test_finds_vlan_of_another_tenant(self):
        tenants = {"tenants": {"blue": {"vlans": [100]}, "red": {"vlans": [200]}}}
        self.assertIn("VLAN 200", self.one({"a": [item(vf(vlan={"id": 200}), tenant="blue")]}, tenants).message)
        self.assertIn("VLAN none", self.one({"a": [item(vf(), tenant="red")]}, tenants).message)
        self.assertIn("no tenant", self.one({"a": [item(vf())]}, tenants).message)
        self.assertIn("green", self.one({"a": [item(vf(), tenant="green")]}, tenants).message)

    def test_finds_vlans_and_partitions_of_two_tenants(self):
        found = self.found({}, {"tenants": {"blue": {"vlans": [100], "partition": 0x1001}, "red": {"vlans": [100], "partition": 0x9001}}})
        self.assertEqual(["vfpass_fleet.tenants.red.vlans", "vfpass_fleet.tenants.red.partition"], [mistake.key for mistake in found])

    def test_finds_unusable_partitions(self):
        for key in (0, 0x7fff, 0xffff, 0x8000, 0x10000, "0x1001", True):
            self.assertIn("P_Key", self.one({}, {"tenants": {"blue": {"partition": key}}}).message)

    def test_finds_vf_number_used_twice(self):
        self.assertIn("VF 3", self.one({"a": [item(vf(index=3)), item(vf(index=3), vm="b")]}).message)

    def test_finds_more_vfs_than_host_yaml_creates(self):
        policy = {"version": 1, "pfs": [{"pf": {"pci": "0000:3b:00.0"}, "virtual-function-count": 1}]}
        mistake = self.one({"a": [item(vf()), item(vf(), vm="b")]}, policies={"a": policy})
        self.assertEqual("vfpass_host_policy.pfs[0].virtual-function-count", mistake.key)

    def test_compares_pfs_named_by_serial_number_and_function(self):
        first = {"serial": "MT2231X00001", "function": 0}
        self.assertIn("VF 3", self.one({"a": [item(vf(pf=first, index=3)), item(vf(pf=first, index=3), vm="b")]}).message)
        self.assertEqual([], self.found({"a": [item(vf(pf=first, index=3)), item(vf(pf=dict(first, function=1), index=3), vm="b")]}))
        policy = {"version": 1, "pfs": [{"pf": first, "virtual-function-count": 1}]}
        mistake = self.one({"a": [item(vf(pf=first)), item(vf(pf=first), vm="b")]}, policies={"a": policy})
        self.assertIn("MT2231X00001 function 0", mistake.message)

    def test_reports_all_mistakes_at_once(self):
        hosts = {"a": [item(vf(mac=MAC)), {"mapping": 3}, item(vf(), vm="", uuid=UUID)],
                 "b": [item(vf(mac=MAC), tenants="typo"), item(vf(), vm="c", uuid="none")], "c": {"not": "a list"}}
        self.assertEqual(6, len(self.found(hosts)))

    def test_survives_any_type(self):
        odd = (None, 3, "text", [], {}, [[]], {"a": 1}, True)
        for value in odd:
            entry = {"name": "rail0", "pf": value, "mac": value, "vlan": value, "guest": value, "infiniband": value, "index": value}
            self.found({"a": [item(entry)], "b": [item(value), value], "c": value}, {"rails": value, "tenants": {"x": value}},
                       {"a": {"pfs": [value]}, "b": {"pfs": value}, "c": value})
            nested = {"name": "rail0", "pf": {"pci": value}, "vlan": {"id": value}, "infiniband": {"node-guid": value},
                      "guest": {"address": value, "mtu": value}}
            self.found({"a": [item(nested, vf(vlan={"id": value}, guest={"address": "1.2.3.4/8"}))]}, {"rails": {"rail0": {"network": value}}})
            self.found({}, value)
            self.found({"a": [item(vf(), vm=value, uuid=value, tenant=value)]}, {"tenants": {"x": {"vlans": value, "partition": value, "membership": value}}})


if __name__ == "__main__":
    unittest.main()
