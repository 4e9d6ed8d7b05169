"""Addresses of the Ansible collection: reading, vfpass's automatic ones, and the scheme for fleets."""

import unittest

from fleet_data import CHECKOUT, UUID
from ansible_collections.vfpass.vfpass.plugins.plugin_utils import addresses


class Automatic(unittest.TestCase):
    def test_automatic_macs_are_those_of_vfpass(self):
        # The plan of vfpass itself, for the VM with this UUID.
        plan = (CHECKOUT / "tests/cli/cases/plan-near/expected-stdout").read_text()
        for entry in ("rail0", "rail1", "rail2", "rail3"):
            self.assertIn("mac " + addresses.automatic_mac(UUID, entry), plan)

    def test_upper_case_uuid_is_the_same_vm(self):
        self.assertEqual(addresses.automatic_guid(UUID, "rail0", "port-guid"), addresses.automatic_guid(UUID.upper(), "rail0", "port-guid"))

    def test_guids_are_locally_administered_and_differ_by_role(self):
        node, port = (addresses.automatic_guid(UUID, "x" * 32, role) for role in ("node-guid", "port-guid"))
        self.assertNotEqual(node, port)
        self.assertEqual(0x02, int(port[:2], 16) & 0x03)


class Reading(unittest.TestCase):
    def test_mac_notations(self):
        for text in ("52:54:00:AB:cd:01", "52-54-00-ab-cd-01"):
            self.assertEqual("52:54:00:ab:cd:01", addresses.read_mac(text))

    def test_rejects_unusable_macs(self):
        for value in ("00:00:00:00:00:00", "01:00:5e:00:00:01", "52:54:00:12:34", "52:54:00:12:34:5g", 190, None):
            self.assertIsNone(addresses.read_mac(value), value)

    def test_guid_notations(self):
        for text in ("02:00:5e:00:53:00:00:01", "02-00-5E-00-53-00-00-01", "0200:5e00:5300:0001", "0x02005e0053000001"):
            self.assertEqual("02:00:5e:00:53:00:00:01", addresses.read_guid(text))

    def test_rejects_guids_of_zeros_and_ones(self):
        for text in ("0x" + "0" * 16, ":".join(["ff"] * 8), "02:00:5e:00:53:00:00", 2):
            self.assertIsNone(addresses.read_guid(text), text)


class Scheme(unittest.TestCase):
    def test_bytes_are_fleet_host_rail_vf(self):
        self.assertEqual("02:07:01:02:03:04", addresses.rail_mac(258, rail=3, vf=4, fleet=7))
        self.assertEqual("02:07:01:02:03:04:00:01", addresses.rail_guid(258, rail=3, vf=4, fleet=7, role="node"))
        self.assertEqual("02:00:01:02:03:00:00:02", addresses.rail_guid(258, 3))

    def test_every_address_is_usable_and_unique(self):
        macs = [addresses.rail_mac(host, rail, vf) for host in (0, 1, 255, 256, 65535) for rail in range(8) for vf in (0, 1, 255)]
        self.assertEqual(macs, [addresses.read_mac(mac) for mac in macs])
        self.assertEqual(len(macs), len(set(macs)))

    def test_rejects_numbers_out_of_range(self):
        for arguments in ((65536, 0), (-1, 0), (0, 256), (0, 0, 256), ("1", 0), (True, 0)):
            with self.assertRaises(ValueError):
                addresses.rail_mac(*arguments)


if __name__ == "__main__":
    unittest.main()
