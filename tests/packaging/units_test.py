"""The systemd units: the directory of the programs, and the sandbox."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TEMPLATES = CHECKOUT / "packaging" / "systemd"
LIMIT = 2.3  # of systemd-analyze security
SYSTEMD = "/lib/systemd/systemd"


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

    def test_documentation_exists(self):
        for service in self.services:
            pages = re.findall(r"man:(\S+)\((\d)\)", " ".join(values(service, "Documentation")))
            self.assertTrue(pages, service.name)
            for name, section in pages:
                self.assertTrue((CHECKOUT / f"docs/manual/{name}.{section}.md").exists(), f"{service.name}: {name}({section})")

    def test_every_timer_and_path_has_its_service(self):
        names = {service.stem for service in self.services}
        for unit in self.units:
            self.assertIn(unit.stem, names)

    def test_units_that_verify_have_the_same_sandbox(self):
        pending, named = (next(unit for unit in self.services if unit.stem == stem)
                          for stem in ("vfpass-verify", "vfpass-verify@"))
        sandbox = (TEMPLATES / "verify-sandbox").read_text(encoding="utf-8")
        for unit in (pending, named):
            self.assertTrue(unit.read_text(encoding="utf-8").endswith(sandbox), unit.name)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv") and os.access(SYSTEMD, os.X_OK),
                         "needs root, setpriv and systemd")
    def test_systemd_passes_the_instance_as_the_name_of_the_vm(self):
        """systemd's own test mode, which starts nothing and refuses to run as root."""
        directory = self.units[0].parent
        directory.chmod(0o755)
        for name in ("train0", "my-vm", "-x", "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"):
            with self.subTest(name):
                report = subprocess.run(
                    ["setpriv", "--reuid=65534", "--clear-groups", SYSTEMD, "--test", "--system",
                     f"--unit=vfpass-verify@{name}.service"],
                    env={"SYSTEMD_UNIT_PATH": f"{directory}:", "PATH": os.environ["PATH"]}, cwd="/", capture_output=True,
                    text=True, check=False)
                self.assertIn(f"Command Line: /opt/vfpass/sbin/vfpass verify --wait 600 -- {name}\n", report.stdout,
                              report.stderr)

    def test_only_exit_status_0_counts_as_verified(self):
        for service in self.services:
            self.assertEqual(values(service, "SuccessExitStatus"), [], service.name)

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
            # Of a template, systemd-analyze checks an instance. The programs are not installed.
            names = (unit.name, unit.name.replace("@.", "@i."))
            lines = [line for line in report.stderr.splitlines()
                     if any(name in line for name in names) and "is not executable" not in line]
            self.assertEqual(lines, [])

    def test_systemd_leaves_the_directories_to_the_group(self):
        """For StateDirectory= and RuntimeDirectory=, systemd sets the owner to the user and group of the unit."""
        configured = dict(re.findall(r"^d (\S+) (\d+ \S+ \S+) -$",
                                     (CHECKOUT / "packaging/tmpfiles.conf").read_text(encoding="utf-8"), re.MULTILINE))
        for service in self.services:
            for place, key in (("/var/lib/", "StateDirectory"), ("/run/", "RuntimeDirectory")):
                for name in values(service, key):
                    mode, group = values(service, key + "Mode")[0], values(service, "Group")
                    self.assertEqual([f"{mode} root {each}" for each in group], [configured[place + name]], service.name)

    def test_metrics_unit_writes_where_it_may(self):
        service = next(unit for unit in self.services if unit.stem == "vfpass-metrics")
        output = Path(values(service, "ExecStart")[0].split("--output ")[1])
        self.assertEqual(values(service, "ReadWritePaths"), [f"-{output.parent}"])
        # doctor reads /usr/lib/modules, which this setting would hide.
        self.assertEqual(values(service, "ProtectKernelModules"), [])

    def test_what_reads_the_kernel_log_can(self):
        """Linux 6.12 and later accept CAP_SYSLOG only, not CAP_SYS_ADMIN (check_syslog_permissions)."""
        for service in self.services:
            reads = service.stem != "vfpass-soft-roce"
            self.assertEqual("CAP_SYSLOG" in values(service, "CapabilityBoundingSet")[0], reads, service.name)
            self.assertEqual(values(service, "BindReadOnlyPaths"), ["/dev/kmsg"] if reads else [], service.name)
            self.assertEqual(values(service, "DeviceAllow"), ["/dev/kmsg r"] if reads else [], service.name)
            # It would hide /dev/kmsg and drop CAP_SYSLOG.
            self.assertEqual(values(service, "ProtectKernelLogs"), [] if reads else ["yes"], service.name)

    def test_what_writes_to_sysfs_can(self):
        """ProtectKernelTunables makes /sys read-only, and these are the only exceptions."""
        for service in self.services:
            expected = {"vfpass-host": ["/sys/bus /sys/devices"], "vfpass-gc": ["/sys/bus /sys/devices"],
                        "vfpass-metrics": ["-/var/lib/prometheus/node-exporter"]}.get(service.stem, [])
            self.assertEqual(values(service, "ReadWritePaths"), expected, service.name)
            self.assertEqual(values(service, "ProtectKernelTunables"), ["yes"], service.name)


if __name__ == "__main__":
    unittest.main()
