"""The systemd units: the directory of the programs, and the sandbox."""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TEMPLATES = CHECKOUT / "packaging" / "systemd"
LIMIT = 2.0  # of systemd-analyze security


def configure(program_directory, target):
    subprocess.run(["cmake", f"-DCMAKE_INSTALL_FULL_SBINDIR={program_directory}", "-DCMAKE_INSTALL_FULL_DOCDIR=/opt/doc",
                    f"-DFROM={TEMPLATES}", f"-DTO={target}",
                    "-P", CHECKOUT / "cmake" / "ConfigureUnits.cmake"], check=True, stdout=sys.stderr)
    return sorted(Path(target).iterdir())


def values(unit, key):
    return re.findall(rf"^{key}=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)


class UnitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.units = configure("/opt/vfpass/sbin", folder.name)
        self.services = [unit for unit in self.units if unit.suffix == ".service"]

    def test_units_run_the_programs_of_the_configured_prefix(self):
        for service in self.services:
            commands = values(service, "ExecStart") + values(service, "ExecReload")
            self.assertTrue(commands, service.name)
            for command in commands:
                self.assertTrue(command.startswith("/opt/vfpass/sbin/vfpass "), f"{service.name}: {command}")
        for unit in self.units:
            self.assertNotIn("@", unit.read_text(encoding="utf-8").replace("@system-service", "").replace(
                "@privileged", "").replace("@resources", ""), unit.name)

    def test_every_timer_and_path_has_its_service(self):
        names = {service.stem for service in self.services}
        for unit in self.units:
            self.assertIn(unit.stem, names)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_exposure_is_below_the_limit(self):
        for service in self.services:
            report = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", service],
                                    capture_output=True, text=True, check=False)
            level = re.search(r"exposure level for \S+: ([0-9.]+)", report.stdout)
            self.assertTrue(level, report.stdout + report.stderr)
            self.assertLess(float(level[1]), LIMIT, report.stdout)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_systemd_accepts_the_units(self):
        for unit in self.units:
            report = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit],
                                    capture_output=True, text=True, check=False)
            # The programs are not installed.
            lines = [line for line in report.stderr.splitlines() if unit.name in line and "is not executable" not in line]
            self.assertEqual(lines, [])

    def test_metrics_unit_writes_where_it_may(self):
        service = next(unit for unit in self.services if unit.stem == "vfpass-metrics")
        output = Path(values(service, "ExecStart")[0].split("--output ")[1])
        self.assertEqual(values(service, "ReadWritePaths"), [f"-{output.parent}"])
        # doctor reads /usr/lib/modules, which this setting would hide.
        self.assertEqual(values(service, "ProtectKernelModules"), [])

    def test_what_writes_to_sysfs_can(self):
        """ProtectKernelTunables makes /sys read-only, and these are the only exceptions."""
        for service in self.services:
            expected = {"vfpass-host": ["/sys/bus /sys/devices"], "vfpass-gc": ["/sys/bus /sys/devices"],
                        "vfpass-metrics": ["-/var/lib/prometheus/node-exporter"]}.get(service.stem, [])
            self.assertEqual(values(service, "ReadWritePaths"), expected, service.name)
            self.assertEqual(values(service, "ProtectKernelTunables"), ["yes"], service.name)


if __name__ == "__main__":
    unittest.main()
