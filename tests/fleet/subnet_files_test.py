"""Files for the subnet manager."""

import unittest

from fleet_data import UUID, fleet_of, item, vf
from ansible_collections.vfpass.vfpass.plugins.plugin_utils import addresses, subnet_files

TENANTS = {"tenants": {"blue": {"partition": 0x1001}, "red": {"partition": 0x9002, "membership": "limited"}, "ethernet": {"vlans": [1]}}}


def member(number):
    guids = {"node-guid": addresses.rail_guid(number, 0, role="node"), "port-guid": addresses.rail_guid(number, 0)}
    return vf(infiniband=guids)


class SubnetFiles(unittest.TestCase):
    def fleet(self, count=2):
        hosts = {"host%02d" % number: [item(member(number), tenant="blue")] for number in range(count)}
        hosts["x"] = [item(vf(infiniband={}), tenant="red", uuid=UUID), item(vf(), vm="y", tenant="ethernet")]
        return fleet_of(hosts, TENANTS)

    def test_partitions_have_their_tenants_port_guids(self):
        text = subnet_files.partitions_conf(self.fleet())
        self.assertIn("blue=0x1001, ipoib, defmember=full : 0x0200000000000002, 0x0200000100000002 ;\n", text)
        automatic = "0x" + addresses.automatic_guid(UUID, "rail0", "port-guid").replace(":", "")
        self.assertIn("red=0x1002, ipoib, defmember=limited : %s ;\n" % automatic, text)
        self.assertNotIn("ethernet", text)

    def test_large_partitions_are_split_into_rules(self):
        rules = [line for line in subnet_files.partitions_conf(self.fleet(40)).splitlines() if line.startswith("blue")]
        self.assertEqual([16, 16, 8], [line.count(", 0x") + 1 for line in rules])
        self.assertLess(max(map(len, rules)), 512)

    def test_lists_each_port_once_in_order(self):
        lines = subnet_files.guid_list(self.fleet()).splitlines()
        self.assertEqual(sorted(set(lines)), lines)
        self.assertEqual(3, len(lines))

    def test_table_names_host_and_vm(self):
        self.assertIn("host01,train0,rail0,blue,0x1001,full,02:00:00:01:00:00:00:01,02:00:00:01:00:00:00:02\n",
                      subnet_files.table(self.fleet()))

    def test_guid_of_a_vm_without_uuid_is_unknown(self):
        fleet = fleet_of({"a": [item(vf(infiniband={}))]})
        self.assertEqual(1, len(subnet_files.unknown(fleet)))
        self.assertEqual("", subnet_files.guid_list(fleet))


if __name__ == "__main__":
    unittest.main()
