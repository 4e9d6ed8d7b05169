"""followed_remedies_test.py VFPASS: following a remedy of doctor ends its finding.

Each fault makes one check fail on a healthy host. The remedy's text is then followed in a copy (steps.py), which knows programs,
firmware and the boot, but no check. The finding must be gone, and no other check may be worse than before.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from faults import ELSEWHERE, FAULTS
from machine import CHECKOUT, Machine, NotUnderstood
from steps import follow

VFPASS = Path(sys.argv.pop(1)).resolve()
DOCUMENT = CHECKOUT / "docs/doctor.md"
BADNESS = {"waived": 0, "passed": 0, "not_observable": 1, "warning": 2, "failed": 3}


def badness(findings):
    """Of the worst finding of a check."""
    return max((BADNESS[each["result"]] for each in findings), default=0)


class Remedies(unittest.TestCase):
    def examine(self, machine):
        config = machine.path("etc/vfpass")
        (config / "vms").mkdir(parents=True, exist_ok=True)
        run = subprocess.run([VFPASS, "--sysroot", machine.folder, "--config-dir", config, "doctor", "--json"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        findings = {}
        for each in json.loads(run.stdout)["findings"]:
            findings.setdefault(each["key"], []).append(each)
        return findings

    @classmethod
    def setUpClass(cls):
        cls.original = Path(tempfile.mkdtemp(prefix="vfpass-remedies-"))
        cls.addClassCleanup(shutil.rmtree, cls.original)
        Machine.healthy(cls.original)

    def machine(self):
        folder = Path(tempfile.mkdtemp(prefix="vfpass-remedies-"))
        self.addCleanup(shutil.rmtree, folder)
        return Machine(shutil.copytree(self.original, folder / "root", symlinks=True))

    def test_every_check_of_the_documentation_is_tried(self):
        table = re.findall(r"^\| `([a-z0-9-]+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
        self.assertGreater(len(table), 45)
        self.assertEqual(set(table), set(FAULTS) | set(ELSEWHERE))
        self.assertEqual(set(), set(FAULTS) & set(ELSEWHERE))

    def test_the_other_tests_exist(self):
        for key, (test, reason) in ELSEWHERE.items():
            self.assertTrue((CHECKOUT / test).exists(), f"{key}: {test}: {reason}")

    def test_healthy_host_has_no_finding(self):
        self.assertEqual({}, {key: each for key, each in self.examine(self.machine()).items() if badness(each) > 1})

    def test_remedies_end_their_findings(self):
        for key, faults in FAULTS.items():
            for name, fault in faults.items():
                with self.subTest(f"{key}: {name}"):
                    self.end(key, fault)

    def test_remedies_without_effect_are_found(self):
        machine = self.machine()
        FAULTS["kvm"]["not loaded"](machine)
        before = self.examine(machine)
        follow(machine, "modprobe kvm_amd")
        self.assertEqual(badness(before["kvm"]), badness(self.examine(machine)["kvm"]))
        for unknown in ("reboot twice", "modprobe kvm_intel and hope", "rm -rf /etc/vfpass"):
            with self.subTest(unknown), self.assertRaises(NotUnderstood):
                follow(machine, unknown)

    def end(self, key, fault):
        machine = self.machine()
        fault(machine)
        before = self.examine(machine)
        worst = badness(before[key])
        self.assertGreater(worst, 0, f"the fault is not found: {before[key]}")
        remedies = [each["remedy"] for each in before[key] if BADNESS[each["result"]] == worst]
        for remedy in remedies:
            # `see acs` refers to the remedy of another check.
            seen = re.search(r"\(see (\S+)\)", remedy)
            follow(machine, before[seen[1]][0]["remedy"] if seen else remedy)
        after = self.examine(machine)
        self.assertIn("passed", {each["result"] for each in after[key]} if worst == 1 else {"passed"}, f"after {remedies}")
        self.assertLess(badness(after[key]), 2, f"after {remedies}: {after[key]}")
        self.assertEqual({}, {each: after[each] for each in after if badness(after[each]) > badness(before.get(each, []))},
                         f"after {remedies}")


if __name__ == "__main__":
    unittest.main()
