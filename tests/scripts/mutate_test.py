"""scripts/mutate: every entry of tests/mutations/list applies to the sources, and a file is always restored."""

import os
import re
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from unittest import mock

from loaded import CHECKOUT, load

mutate = load("mutate")
ENTRY = """name: base.limit
file: src/base/read.cpp
target: unit-base
test: Read.RefusesLongText
guards: bound
lost: a long text exhausts memory
-if (size > limit) {
-  throw tooLong(limit);
+if (false) {
+  throw tooLong(limit);
"""
SOURCE = "void read() {\nif (size > limit) {\n  throw tooLong(limit);\n}\n}\n"


class List(unittest.TestCase):
    def test_every_entry_applies(self):
        mutations = mutate.parse((CHECKOUT / mutate.LIST).read_text(encoding="utf-8"))
        self.assertEqual([], mutate.problems_of(mutations, CHECKOUT))


class Documentation(unittest.TestCase):
    """The tables of docs/reliability.md count the entries of each kind and stage."""

    def counts(self, heading):
        text = (CHECKOUT / "docs/reliability.md").read_text(encoding="utf-8")
        table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        return {row[0]: int(row[-1]) for row in rows}

    def test_counts_are_those_of_the_list(self):
        mutations = mutate.parse((CHECKOUT / mutate.LIST).read_text(encoding="utf-8"))
        kinds = Counter(each.guards for each in mutations)
        self.assertEqual(kinds | {"all": len(mutations)}, self.counts("kind"))
        self.assertEqual(Counter(map(mutate.stage_of, mutations)), self.counts("stage"))


class WithSources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("src/base/read.cpp", SOURCE)
        self.write("tests/unit/base/CMakeLists.txt", "")
        self.write("tests/unit/base/read_test.cpp", "TEST(Read, RefusesLongText) {}\nTEST_P(Read, Reads) {}\n")
        [self.entry] = mutate.parse(ENTRY)

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


class Entries(WithSources):
    def problem(self, **changes):
        return mutate.problem_of(self.entry._replace(**changes), self.root)

    def test_entry_that_applies_has_no_problem(self):
        self.assertEqual("", self.problem())
        self.assertEqual("", self.problem(test="Sizes/Read.Reads/0"))

    def test_entry_that_is_out_of_date_has_one(self):
        self.assertIn("does not exist", self.problem(file="src/base/moved.cpp"))
        self.assertIn("0 times", self.problem(text="if (length > limit) {"))
        self.assertIn("2 times", self.problem(text="limit)"))
        self.assertIn("begin with the stage", self.problem(name="config.limit"))
        self.assertIn("no test", self.problem(test="Read.RefusesText"))
        self.assertIn("no test", self.problem(test="Read.*"))
        self.assertIn("target", self.problem(target="unit-moved"))
        self.assertIn("unknown kind", self.problem(guards="luck"))
        self.assertIn("changes nothing", self.problem(instead=self.entry.text))

    def test_name_is_used_once(self):
        self.assertEqual(1, len(mutate.problems_of([self.entry, self.entry], self.root)))

    def test_incomplete_entry_is_refused(self):
        for removed in (1, 5):
            lines = ENTRY.splitlines()
            del lines[removed]
            with self.assertRaises(mutate.BadList):
                mutate.parse("\n".join(lines))

    def test_file_is_restored_after_an_interruption(self):
        file = self.root / self.entry.file
        with self.assertRaises(SystemExit), mutate.applied(self.entry, self.root):
            self.assertIn("if (false) {", file.read_text(encoding="utf-8"))
            raise SystemExit(143)
        self.assertEqual(SOURCE, file.read_text(encoding="utf-8"))


class FakeRunner(mutate.Runner):
    """Neither builds nor runs anything."""

    def __init__(self, compiles, passing):
        super().__init__(Path("/nonexistent"))
        self.compiles, self.passing = compiles, passing

    def builds(self, *targets):
        self.output = "error"
        return self.compiles

    def passes(self, target, test):
        return self.passing


class Fates(WithSources):
    def test_each_fate(self):
        for compiles, passing, fate in ((True, False, "killed"), (True, True, "SURVIVED"), (False, False, "does not build")):
            self.assertEqual(fate, FakeRunner(compiles, passing).fate(self.entry, self.root))

    def test_test_that_always_fails_kills_nothing(self):
        with self.assertRaises(SystemExit):
            mutate.require_passing(FakeRunner(True, False), [self.entry])


class Programs(WithSources):
    """With programs in place of the unit tests."""

    def passes(self, script, seconds=None):
        self.write("build/tests/unit/base/unit-base", "#!/bin/sh\n" + script)
        (self.root / "build/tests/unit/base/unit-base").chmod(0o755)
        runner = mutate.Runner(self.root / "build")
        if seconds is not None:
            runner.seconds["Read.RefusesLongText"] = seconds
        return runner.passes("unit-base", "Read.RefusesLongText")

    def test_one_test_has_to_run_and_to_pass(self):
        self.assertTrue(self.passes("echo '[  PASSED  ] 1 test.'"))
        self.assertTrue(self.passes("echo \"$*\" | grep -q =Read.RefusesLongText && echo '[  PASSED  ] 1 test.'"))
        self.assertFalse(self.passes("echo '[  PASSED  ] 0 tests.'"))
        self.assertFalse(self.passes("echo '[  PASSED  ] 1 test.'; exit 1"))

    def test_test_that_hangs_does_not_pass_and_is_ended(self):
        fifo = self.root / "fifo"
        os.mkfifo(fifo)
        reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reading)
        with mock.patch.object(mutate, "LEAST_SECONDS", 1):
            self.assertFalse(self.passes(f"(exec sleep 1000 3>{fifo}) & echo '[  PASSED  ] 1 test.'; wait", seconds=0))
        os.set_blocking(reading, True)
        self.assertEqual(b"", os.read(reading, 1), "its child has ended, too")

    def test_time_with_a_change_depends_on_the_time_without(self):
        runner = mutate.Runner(self.root)
        self.assertEqual(mutate.TEST_SECONDS, runner.limit_of("Read.New"))
        runner.seconds = {"Read.Short": 0.1, "Read.Long": 20}
        self.assertEqual(mutate.LEAST_SECONDS, runner.limit_of("Read.Short"))
        self.assertEqual(200, runner.limit_of("Read.Long"))


if __name__ == "__main__":
    unittest.main(argv=["mutate_test"])
