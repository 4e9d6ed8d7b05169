"""tests/lab/older_state.py, with the metadata of version 1 that the unit tests of domain read."""

import re
import sqlite3
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lab"))
import older_state  # noqa: E402  # pylint: disable=wrong-import-position

# tests/fake/seal_key.hpp
SECRET, HOST = bytes([0x5a]) * 32, "0123456789abcdef" * 2


def version_1():
    prefix = "{" + older_state.NAMESPACE + "}"
    metadata = ElementTree.parse(TESTS / "unit/domain/cases/version-1.xml").find(f".//{prefix}domain")
    for each in metadata.iter():
        each.tag = each.tag.removeprefix(prefix)
        each.text = each.tail = None
    return metadata


class OlderState(unittest.TestCase):
    def test_seal(self):
        metadata = version_1()
        self.assertEqual(metadata.get("seal"), older_state.seal_of(metadata.get("uuid"), list(metadata), SECRET, HOST))

    def test_record_becomes_the_element_of_version_1(self):
        record = {"kind": "function", "vf-name": "gpu0", "pf": "0000:41:00.0", "pf-path": "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0",
                  "pf-serial": "MT2042X00001 <\"&'%>", "vf-index": 0, "vf": "0000:41:00.0", "vf-count": 0, "infiniband": False, "settings": {},
                  "required": [], "allow": [], "managed": False, "interface-form": False, "vfio-driver": "nvgrace_gpu_vfio_pci", "persistent": True,
                  "guest": {"address": "0000:09:00.0", "controllers": [
                      {"model": "pcie-expander-bus", "index": 7, "address": "0000:00:09.0", "node": 1, "bus-number": 64, "hotplug": True},
                      {"model": "pcie-root-port", "index": 9, "address": "0000:07:00.0", "bus-number": 0, "hotplug": False}]},
                  "original": {"driver": "mlx5_core", "driver-override": "", "settings": {}, "created": False}, "generation": 7}
        expected = version_1()[2]
        made = older_state.lease_of_version_1(record)
        self.assertEqual(ElementTree.tostring(ElementTree.fromstring(ElementTree.canonicalize(ElementTree.tostring(expected)))),
                         ElementTree.tostring(ElementTree.fromstring(ElementTree.canonicalize(ElementTree.tostring(made)))))

    def test_database_has_the_tables_of_format_2_and_migrates(self):
        formats = re.findall(r'R"sql\((.*?)\)sql"', (TESTS.parent / "src/state/schema.cpp").read_text(encoding="utf-8"), re.DOTALL)
        self.assertEqual([f"PRAGMA user_version = {number + 1};" for number in range(len(formats))],
                         [text.strip().splitlines()[-1].strip() for text in formats])

        def tables(database):
            return sorted(database.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "vfpass.db"
            database, second = sqlite3.connect(path, isolation_level=None), sqlite3.connect(":memory:")
            for text in formats:
                database.executescript(text)
            current = tables(database)
            database.execute("INSERT INTO ended_leases (domain, vf_name, generation) VALUES ('a', 'rail0', 1)")
            self.assertEqual(2, older_state.database_of_format_2(path))
            for text in formats[:2]:
                second.executescript(text)
            self.assertEqual(tables(second), tables(database))
            for text in formats[2:]:
                database.executescript(text)
            self.assertEqual(current, tables(database))
            database.close()
            second.close()

    def test_member_without_a_place_is_refused(self):
        with self.assertRaises(SystemExit):
            older_state.element("guest", {"address": "0000:09:00.0", "later": 1})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
