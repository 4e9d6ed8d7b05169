"""docs/reliability.md: every test exists that holds one of README's promises, a sequence that was found, or a kind of fault."""

import re
import unittest

from loaded import CHECKOUT

PAGE = CHECKOUT / "docs/reliability.md"
TESTS = CHECKOUT / "tests"


PROMISES, SEQUENCES, FAULTS = "## README's promises", "### Fixed sequences", "### Kinds of faults"


def rows(heading):
    """The cells of the table below the heading."""
    section = re.split(r"\n###? ", PAGE.read_text(encoding="utf-8").partition(f"{heading}\n")[2])[0]
    cells = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [(subject.strip(), tests.strip()) for subject, tests in cells[1:]]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def text_of(pattern):
    return "\n".join(file.read_text(encoding="utf-8") for file in TESTS.glob(pattern))


def has_unit_test(stage, suite, name):
    return re.search(rf"^TEST(_F|_P)?\(\s*{suite},\s*{name}\)", text_of(f"unit/{stage}/*.cpp"), re.MULTILINE) is not None


def has_python_test(part, subject, method):
    return f"def {method}(self)" in text_of(f"{part}/{subject}_test.py")


def is_sweep(option):
    return f'"{option.removeprefix("--")}"' in text_of("crash/sweep/experiment.cpp")


def exists(test):
    if test.startswith("--"):
        return is_sweep(test)
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
    def check(self, heading, fewest):
        found = rows(heading)
        self.assertGreater(len(found), fewest)
        for subject, tests in found:
            self.assertTrue(quoted(tests) or re.match("not covered.{10}", tests), subject)
            for test in quoted(tests):
                self.assertTrue(exists(test), f"{subject}: there is no test {test}")

    def test_every_promise_has_a_test_that_exists(self):
        self.check(PROMISES, 20)

    def test_every_sequence_has_a_test_that_exists(self):
        self.check(SEQUENCES, 20)
        for sequence, tests in rows(SEQUENCES):
            self.assertNotIn("not covered", tests, sequence)

    def test_every_fault_has_a_test_or_a_reason(self):
        self.check(FAULTS, 30)

    def test_tests_that_do_not_exist_are_found(self):
        for test in ("unit.apply.RoundTrip.Missing", "unit.missing.RoundTrip.SecondAttachChangesNothing", "unit.RoundTrip",
                     "lab.missing", "cli.missing", "crash.missing", "crash.lost", "packaging.missing",
                     "packaging.maintainer_scripts.test_missing", "missing.missing", "--missing"):
            self.assertFalse(exists(test), test)


if __name__ == "__main__":
    unittest.main(argv=["promises_test"])
