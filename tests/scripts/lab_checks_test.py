"""lab/lib/checks.sh: how a lab test ends."""

import subprocess
import unittest

from loaded import CHECKOUT

CHECKS = CHECKOUT / "lab/lib/checks.sh"


class Ends(unittest.TestCase):
    def run_test(self, text):
        """The exit code and the output of a test with the commands TEXT."""
        done = subprocess.run(["bash", "-uc", f'source "{CHECKS}"\n{text}'], stdout=subprocess.PIPE, text=True,
                              check=False)
        return done.returncode, done.stdout

    def test_goes_on_after_a_failed_expectation(self):
        code, output = self.run_test('expect "one" false; expect "two" true; finish')
        self.assertEqual(1, code)
        self.assertIn("ok   two\n\n1 checks passed, 1 failed\n", output)

    def test_ends_at_a_failed_requirement(self):
        code, output = self.run_test('require "one" true; require "two" false; expect "three" true; finish')
        self.assertEqual(1, code)
        self.assertNotIn("three", output)
        self.assertTrue(output.endswith("\n1 checks passed, 1 failed\n"), output)

    def test_without_a_check_is_no_success(self):
        self.assertEqual((1, "\n0 checks passed, 0 failed\n"), self.run_test("finish"))


if __name__ == "__main__":
    unittest.main(argv=["lab_checks_test"])
