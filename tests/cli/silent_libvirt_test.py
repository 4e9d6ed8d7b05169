"""silent_libvirt_test.py VFPASS: every command that changes no domain ends although libvirt, which accepts the connection, does not
answer (deadlines::libvirtAnswer), and says so as far as it needs the answer."""

import concurrent.futures
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

VFPASS = str(Path(sys.argv.pop(1)).resolve())
SILENT = "libvirt did not answer within 10 s"
MAPPING = """version: 1
vm: train0
vfs:
  - {name: rail0, pf: {pci: "0000:01:00.0"}}
"""
# Those that cannot do without the answer.
NEEDING = [["status"], ["status", "train0"], ["plan", "train0"], ["check"], ["check", "train0"], ["attach", "--dry-run", "train0"],
           ["detach", "--dry-run", "train0"], ["status", "--json"]]
AS_ROOT = [["verify", "train0"], ["guest-setup", "train0"]]


class SilentLibvirt(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "config" / "vms").mkdir(parents=True, mode=0o755)
        (self.folder / "config" / "vms" / "train0.yaml").write_text(MAPPING)
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(str(self.folder / "libvirt"))
        listening.listen(64)

    def run_command(self, *command):
        start = time.monotonic()
        result = subprocess.run(
            [VFPASS, "--config-dir", self.folder / "config", "--state-dir", self.folder / "state", "--run-dir", self.folder / "run",
             "--connect", f"qemu+unix:///system?socket={self.folder}/libvirt", *command],
            capture_output=True, text=True, check=False, timeout=100)
        return result, time.monotonic() - start

    def test_commands_that_need_libvirt_fail(self):
        commands = NEEDING + (AS_ROOT if os.geteuid() == 0 else [])
        with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
            for command, (result, _) in zip(commands, pool.map(lambda each: self.run_command(*each), commands)):
                with self.subTest(command=command):
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertIn(SILENT, result.stderr)

    def test_faults_of_files_are_named_without_libvirt(self):
        (self.folder / "config" / "vms" / "train1.yaml").write_text("version: 1\nvm: train1\nvfs: 7\n")
        plan = self.folder / "plan.json"
        plan.write_text("{}")
        mistake = "train1.yaml:3:6"
        faults = [(["attach", "train0", "--plan", plan], "not a saved plan"), (["detach", "train0", "--plan", plan], "not a saved plan"),
                  (["host", "apply", "--plan", plan], "not a saved plan"), (["plan", "train1"], mistake),
                  (["attach", "--dry-run", "train1"], mistake)]
        if os.geteuid() == 0:
            faults += [(["attach", "train1"], mistake), (["guest-setup", "train1"], mistake), (["verify", "train1"], mistake),
                       (["verify", "train0", "--probe", "/nonexistent/probe"], "cannot read the probe from /nonexistent/probe")]
        for command, fault in faults:
            with self.subTest(command=command):
                result, _ = self.run_command(*command)
                self.assertIn(result.returncode, (1, 2), result.stderr)
                self.assertIn(fault, result.stderr)
                self.assertNotIn(SILENT, result.stderr)

    def test_other_commands_print_what_they_know(self):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            metrics, doctor, of_vm = pool.map(lambda each: self.run_command(*each),
                                              [["metrics"], ["doctor", "--all"], ["doctor", "--all", "--vm", "train0"]])
        self.assertEqual(metrics[0].returncode, 0, metrics[0].stderr)
        self.assertIn("vfpass_libvirt_up 0\n", metrics[0].stdout)
        self.assertIn('vfpass_collector_success{collector="doctor"} 1\n', metrics[0].stdout)
        self.assertNotIn('collector="status"', metrics[0].stdout)
        self.assertEqual(metrics[0].stderr.count(SILENT), 1)
        for result, _ in (doctor, of_vm):
            self.assertRegex(result.stdout, "qemu-version +not observable +- +libvirt does not respond", result.stderr)

    def test_snapshot_says_what_it_lacks(self):
        result, _ = self.run_command("snapshot", str(self.folder / "host"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"the snapshot lacks the versions of libvirt and QEMU: {SILENT}", result.stderr)
        self.assertRegex(result.stderr, "restart its daemon.*take it again")
        note = (self.folder / "host/vfpass/libvirt/versions-not-observed").read_text()
        self.assertEqual(note, "libvirt did not answer when this snapshot was taken\n")
        self.assertFalse((self.folder / "host/vfpass/libvirt/versions").exists())
        doctor, _ = self.run_command("--sysroot", str(self.folder / "host"), "doctor", "--all")
        self.assertRegex(doctor.stdout, f"qemu-version +not observable +- +{note.strip()}", doctor.stderr)

    def test_completion_has_the_mappings(self):
        result, seconds = self.run_command("complete", "--", "--connect", f"qemu+unix:///system?socket={self.folder}/libvirt",
                                           "--config-dir", str(self.folder / "config"), "status", "")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("train0\thas a mapping\n", result.stdout)
        self.assertLess(seconds, 8)


if __name__ == "__main__":
    unittest.main()
