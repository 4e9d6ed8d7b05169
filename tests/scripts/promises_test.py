"""README's promises in docs/reliability.md: every test that holds one exists."""

import re
import unittest

from loaded import CHECKOUT

PAGE = CHECKOUT / "docs/reliability.md"
TESTS = CHECKOUT / "tests"


def rows():
    """Promise and tests, from the table below the heading."""
    section = PAGE.read_text(encoding="utf-8").partition("## README's promises\n")[2].partition("\n## ")[0]
    cells = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [(promise.strip(), re.findall(r"`([^`]+)`", tests)) for promise, tests in cells[1:]]


def text_of(pattern):
    return "\n".join(file.read_text(encoding="utf-8") for file in TESTS.glob(pattern))


def has_unit_test(stage, suite, name):
    return re.search(rf"^TEST(_F|_P)?\(\s*{suite},\s*{name}\)", text_of(f"unit/{stage}/*.cpp"), re.MULTILINE) is not None


def has_python_test(part, subject, method):
    return f"def {method}(self)" in text_of(f"{part}/{subject}_test.py")


def exists(test):
    part, _, rest = test.partition(".")
    names = rest.split(".")
    if part == "unit":
        return len(names) == 3 and has_unit_test(*names)
    if part == "lab":
        return (TESTS / f"lab/{rest}.sh").is_file()
    if part == "cli":
        return (TESTS / f"cli/cases/{rest}").is_dir()
    if part == "crash":
        return re.search(rf"(?<![\w.-]){rest}(?![\w.-])|crash\.{rest}(?![\w.-])", text_of("crash/CMakeLists.txt")) is not None
    if len(names) == 2:
        return has_python_test(part, *names)
    return any((TESTS / part / f"{rest}_test.{ending}").is_file() for ending in ("py", "sh"))


class Promises(unittest.TestCase):
    def test_every_promise_has_a_test_that_exists(self):
        self.assertGreater(len(rows()), 20)
        for promise, tests in rows():
            self.assertTrue(tests, promise)
            for test in tests:
                self.assertTrue(exists(test), f"{promise}: there is no test {test}")

    def test_tests_that_do_not_exist_are_found(self):
        for test in ("unit.apply.RoundTrip.Missing", "unit.missing.RoundTrip.SecondAttachChangesNothing", "unit.RoundTrip",
                     "lab.missing", "cli.missing", "crash.missing", "crash.lost", "packaging.missing",
                     "packaging.maintainer_scripts.test_missing", "missing.missing"):
            self.assertFalse(exists(test), test)


if __name__ == "__main__":
    unittest.main(argv=["promises_test"])
