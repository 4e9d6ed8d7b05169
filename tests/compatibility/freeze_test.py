"""scripts/freeze-formats records the formats of a version once, and compares them afterwards."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
NEEDED = ("scripts/freeze-formats", "cmake/Version.cmake", "docs/json", "docs/schema", "examples", "tests/compatibility/current",
          "tests/unit/report/golden")


class Freeze(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.checkout = Path(directory.name)
        for name in NEEDED:
            target = self.checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (CHECKOUT / name).is_dir() else shutil.copy)(CHECKOUT / name, target)

    def freeze(self, *arguments):
        return subprocess.run([self.checkout / "scripts/freeze-formats", *arguments], capture_output=True, text=True)

    def recorded(self):
        return self.checkout / "tests/compatibility/0.9.0"

    def set_version(self):
        (self.checkout / "cmake/Version.cmake").write_text("set(VFPASS_RELEASE 0.9.0)\n")

    def test_records_schemas_documents_and_configuration(self):
        self.set_version()
        self.assertEqual(0, self.freeze().returncode)
        for name in ("schemas/mapping.schema.json", "schemas/status.schema.json", "documents/status.json",
                     "configuration/vms/every-key.yaml", "configuration/vms/every-key.meaning", "configuration/host.yaml"):
            self.assertTrue((self.recorded() / name).is_file(), name)

    def test_leaves_out_formats_without_a_promise(self):
        self.set_version()
        self.freeze()
        for name in ("probe.schema.json", "saved-plan.schema.json"):
            self.assertTrue((self.checkout / "docs/json" / name).is_file(), name)
            self.assertFalse((self.recorded() / "schemas" / name).exists(), name)

    def test_refuses_to_change_a_recorded_version(self):
        self.set_version()
        self.freeze()
        self.assertEqual(0, self.freeze("--check").returncode)
        status = self.checkout / "docs/json/status.schema.json"
        status.write_text(status.read_text().replace('"leases"', '"lease"'))
        for arguments in ((), ("--check",)):
            done = self.freeze(*arguments)
            self.assertEqual(1, done.returncode)
            self.assertIn("schemas/status.schema.json", done.stderr)
        self.assertIn('"leases"', (self.recorded() / "schemas/status.schema.json").read_text())

    def test_check_fails_for_a_version_without_record(self):
        self.set_version()
        done = self.freeze("--check")
        self.assertEqual((1, False), (done.returncode, self.recorded().exists()))
        self.assertIn("freeze-formats", done.stderr)


if __name__ == "__main__":
    unittest.main()
