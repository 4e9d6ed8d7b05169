"""lab_declarations_test.py DECLARED: every lab test declares what the selection and the matrix need."""

import re
import sys
import unittest

from loaded import CHECKOUT

import lab_tests
import tested_table

DECLARED = sys.argv.pop(1)
TESTS, NEEDS = lab_tests.read_declared(DECLARED), lab_tests.read_needs(DECLARED)
LAB = CHECKOUT / "tests/lab"


class LabDeclarations(unittest.TestCase):
    def test_every_long_test_declares_covered_paths(self):
        for test in TESTS:
            with self.subTest(test.name):
                covers = lab_tests.declared_covers(LAB / f"{test.script}.sh")
                self.assertTrue(covers or test.part == "short", "no `# covers:` line")
                missing = [path for path in covers if not any(CHECKOUT.glob(path))]
                self.assertEqual([], missing, "these paths do not exist")

    def test_every_machine_exists(self):
        for test in TESTS:
            self.assertTrue((CHECKOUT / "lab/machines" / test.machine).exists(), f"{test.name}: {test.machine}")

    def test_every_script_is_declared_or_sourced(self):
        scripts = {each.stem: each.read_text(encoding="utf-8") for each in LAB.glob("*.sh")}
        text = "\n".join(scripts.values())
        sourced = set(re.findall(r"^source /vfpass/tests/lab/(\w+)\.sh", text, re.MULTILINE))
        self.assertEqual(set(), set(scripts) - sourced - {each.script for each in TESTS})

    def test_every_duration_belongs_to_a_test_or_part(self):
        parts = {"unit", "cli", "crash", "style", "scripts", "sanitized"}
        durations = lab_tests.read_durations(LAB / "durations")
        known = {each.name for each in TESTS} | {f"prepare_{each}" for each in NEEDS} | parts
        self.assertEqual(set(), set(durations) - known)
        for name, each in durations.items():
            self.assertGreater(each.seconds, 0, name)
            self.assertRegex(each.date, r"^\d{4}-\d\d-\d\d$", name)

    def test_reasons_name_a_release(self):
        for test in TESTS:
            self.assertEqual(set(), set(test.not_on) - set(tested_table.RELEASES), test.name)
            self.assertTrue(all(test.not_on.values()), test.name)

    def test_every_need_is_declared(self):
        for test in TESTS:
            self.assertEqual(set(), set(test.needs) - set(NEEDS), test.name)

    def test_every_release_has_packages(self):
        for release in tested_table.RELEASES:
            self.assertTrue((CHECKOUT / f"lab/image/packages.{release}").exists(), release)


if __name__ == "__main__":
    unittest.main()
