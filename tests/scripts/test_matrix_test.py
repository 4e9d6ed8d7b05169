"""test_matrix_test.py DECLARED: running, recording and rendering the test matrix. A script replaces lab/run."""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from loaded import load

matrix = load("test-matrix")
import lab_tests  # noqa: E402  (loaded.py sets the path)
import matrix_versions  # noqa: E402
import tested_table  # noqa: E402

OWN, OTHER = matrix_versions.own_release(), "other"
tested_table.RELEASES = {release: f"Debian {release}" for release in sorted((OWN, OTHER))}
tested_table.FIRST_RELEASE = OWN
COLUMNS = "name\tgroup\tpart\tseconds\tmachine\tguests\tscript\targuments\toptions\tneeds\tnot_on\tenough"
DECLARED = [
    "near\tnear\tlong\t400\tfunctions\tnone\tnear\t\t--memory 512\t\t\t",
    "before\tbefore\tlong\t300\ttwo-pfs\tbusybox\tbefore\t\t\t\tother: no driver\t",
    "after\tbefore\tlong\t300\tmoved\tbusybox\tafter\t\t\t\tother: no driver\t",
    "real\treal\tlong\t100\ttwo-pfs\tdebian-13,busybox\tguest\tdebian-13\t\tdisks\t\tthe same guest",
]
# Records its call, then runs the test's .behaviour file.
STAND_IN = """#!/bin/bash
echo "$*" >>"$(dirname "$0")/calls"
name=$(basename "$(grep -oE '[^ ]+[.]sh' <<<"$*")" .sh)
source "$(dirname "$0")/$name.behaviour"
"""
PASSES = 'echo "version: guest debian-13: systemd 257"; printf "ok   a check\\n\\n3 checks passed, 0 failed\\n"'


class Checkout:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.write("build/tests/lab/declared", "\n".join([COLUMNS, *DECLARED]) + "\n")
        self.write("build/tests/lab/declared-needs", "name\tseconds\toptions\ndisks\t60\t--guests\n")
        self.write("tests/lab/results", "")
        self.write("tests/lab/durations", "# head\n")
        self.write("docs/tested.md", f"prose\n{matrix.BEGIN}\nold\n{matrix.END}\nmore prose\n")
        for release in (OWN, OTHER):
            self.write(f"{matrix_versions.build_directory(release, self.folder)}/lab/kernel/version", f"6.1-{release}\n")
        for machine in ("functions", "two-pfs", "moved", "many"):
            self.write(f"lab/machines/{machine}", "")
        self.write("lab/run", STAND_IN).chmod(0o755)
        for program in ("lab/prepare", "scripts/install-packages", "scripts/build"):
            self.write(program, f'#!/bin/bash\necho "{program} $*" >>{self.folder}/lab/calls\n').chmod(0o755)
        for script in ("near", "before", "after", "guest"):
            self.behave(script, PASSES)

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def behave(self, script, behaviour):
        self.write(f"lab/{script}.behaviour", behaviour + "\n")

    def calls(self):
        file = self.folder / "lab/calls"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def run(self, *options, ready=("--no-build",)):
        """The exit status and the output."""
        printed = io.StringIO()
        command = ["test-matrix", *ready, "--checkout", str(self.folder), *options]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(printed), \
                contextlib.redirect_stderr(printed), mock.patch.object(matrix, "commit_of", lambda _: "abc"):
            try:
                return matrix.main(), printed.getvalue()
            except SystemExit as end:
                return end.code, printed.getvalue()

    def page(self):
        return (self.folder / "docs/tested.md").read_text(encoding="utf-8")

    def results(self):
        lines = (self.folder / "tests/lab/results").read_text(encoding="utf-8").splitlines()
        return {(each["release"], each["test"]): each for each in map(json.loads, lines)}


def row_of(text, name):
    """The cells of a test by release."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return dict(zip(sorted((OWN, OTHER)), line.strip("| ").split(" | ")[3:]))


class WithCheckout(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout = Checkout(folder.name)


class Running(WithCheckout):
    def test_calls_the_lab_as_declared(self):
        self.assertEqual(0, self.checkout.run("--release", OWN)[0])
        near, before, after, real = self.checkout.calls()
        self.assertRegex(near, r"^--timeout 400 --machine functions --memory 512 \S+/tests/lab/near\.sh$")
        self.assertRegex(real, r"^--timeout 100 --machine two-pfs \S+/guest\.sh debian-13$")
        self.assertEqual(re.findall(r"--state (\S+)", before), re.findall(r"--state (\S+)", after))

    def test_names_another_release(self):
        self.checkout.run("--release", OTHER, "--only", "near")
        self.assertIn("--release other", self.checkout.calls()[0])

    def test_prepares_what_the_tests_need(self):
        self.checkout.run("--only", "near|real", ready=())
        calls = [each.split(" --timeout")[0] for each in self.checkout.calls() if not each.startswith("--timeout")]
        of_release = {OWN: ["", " --guests"], OTHER: [" --release other", " --release other --guests"]}
        self.assertEqual([f"lab/prepare {each.strip()}" for release in sorted(of_release)
                          for each in of_release[release]], [each for each in calls if "prepare" in each])
        self.assertEqual("scripts/install-packages ", calls[0])
        self.assertRegex(calls[1], r"^scripts/build \S+/build -DVFPASS_ALL_TESTS=ON$")

    def test_gives_two_boots_an_empty_disk(self):
        leaves = 'disk=$(grep -oE "[^ ]+[.]disk" <<<"$*"); ls "$disk" | grep . && exit 1; touch "$disk/left"; '
        self.checkout.behave("before", leaves + PASSES)
        for _ in range(2):
            self.assertEqual(0, self.checkout.run("--release", OWN, "--only", "before", "--again")[0])

    def test_skips_the_second_boot_of_a_pair_when_the_first_fails(self):
        self.checkout.behave("before", "exit 1")
        self.assertEqual(1, self.checkout.run("--release", OWN, "--only", "before")[0])
        self.assertEqual(1, len(self.checkout.calls()))
        self.assertEqual("not run", row_of(self.checkout.page(), "after")[OWN])

    def test_never_runs_what_is_not_supported(self):
        self.checkout.run()
        self.assertFalse([each for each in self.checkout.calls() if "before" in each and "--release" in each])

    def test_continues_after_an_interrupted_run(self):
        self.checkout.behave("before", "exit 130")
        self.assertEqual(2, self.checkout.run("--release", OWN)[0])
        self.assertEqual({(OWN, "near")}, set(self.checkout.results()))
        self.checkout.behave("before", PASSES)
        self.assertEqual(0, self.checkout.run("--release", OWN)[0])
        self.assertEqual(1, sum("near.sh" in each for each in self.checkout.calls()))
        self.assertEqual(4, len(self.checkout.results()))

    def test_repeats_on_request_and_after_another_commit(self):
        for options in ((), ("--again",)):
            self.checkout.run("--release", OWN, "--only", "near", *options)
        self.assertEqual(2, len(self.checkout.calls()))
        with mock.patch.object(matrix, "has_result", lambda *_: False):
            self.checkout.run("--release", OWN, "--only", "near")
        self.assertEqual(3, len(self.checkout.calls()))

    def test_keeps_the_log(self):
        self.checkout.run("--release", OWN, "--only", "near")
        log = self.checkout.folder / "build/matrix" / OWN / "near.log"
        self.assertIn("3 checks passed", log.read_text(encoding="utf-8"))


class Results(WithCheckout):
    def outcome(self, behaviour):
        self.checkout.behave("near", behaviour)
        status, text = self.checkout.run("--release", OWN, "--only", "near")
        return status, row_of(text, "near")[OWN]

    def test_passed(self):
        status, shown = self.outcome(PASSES)
        self.assertEqual(0, status)
        self.assertRegex(shown, r"^passed: 3 checks, \d+ s, \d{4}-\d\d-\d\d$")

    def test_failed_checks(self):
        status, shown = self.outcome('echo "3 checks passed, 2 failed"; exit 1')
        self.assertEqual(1, status)
        self.assertRegex(shown, r"^\*\*failed\*\*: 2 of 5 checks, ")

    def test_failed_without_a_count(self):
        self.assertRegex(self.outcome("echo ok; exit 124")[1], r"^\*\*failed\*\*: exit code 124, ")

    def test_exit_code_0_without_a_count_is_a_failure(self):
        self.assertRegex(self.outcome("true")[1], r"^\*\*failed\*\*: exit code 0, ")

    def test_bad_usage_of_the_lab_is_no_result(self):
        self.assertEqual((2, "not run"), (self.outcome_status("exit 2"), row_of(self.table(), "near")[OWN]))

    def outcome_status(self, behaviour):
        self.checkout.behave("near", behaviour)
        return self.checkout.run("--release", OWN, "--only", "near")[0]

    def table(self):
        return self.checkout.run("--write")[1]

    def test_not_supported_shows_the_reason(self):
        self.assertEqual("not supported: no driver", row_of(self.table(), "after")[OTHER])

    def test_enough_shows_the_reason_on_other_releases_without_a_run(self):
        self.assertEqual({OWN: "not run", OTHER: "not needed: the same guest"}, row_of(self.table(), "real"))
        self.checkout.run("--only", "real")
        self.assertRegex(row_of(self.checkout.page(), "real")[OTHER], "^passed: ")

    def test_the_other_release_is_not_run(self):
        self.checkout.run("--release", OWN)
        self.assertEqual("not run", row_of(self.checkout.page(), "near")[OTHER])

    def test_a_run_on_another_machine_does_not_count(self):
        self.checkout.run("--release", OWN, "--only", "near")
        declared = self.checkout.folder / "build/tests/lab/declared"
        declared.write_text(declared.read_text(encoding="utf-8").replace("\tfunctions\t", "\tmany\t"), encoding="utf-8")
        self.assertEqual("not run", row_of(self.table(), "near")[OWN])

    def test_the_newest_run_counts(self):
        self.checkout.run("--release", OWN, "--only", "near")
        self.checkout.behave("near", "exit 1")
        self.checkout.run("--release", OWN, "--only", "near", "--again")
        self.assertIn("failed", row_of(self.checkout.page(), "near")[OWN])

    def test_records_the_versions_of_the_run(self):
        self.checkout.run("--release", OWN, "--only", "real")
        versions = self.checkout.results()[OWN, "real"]["versions"]
        self.assertEqual(f"6.1-{OWN}", versions["kernel"])
        self.assertEqual("systemd 257", versions["guest debian-13"])
        self.assertIn("guest busybox", versions)
        self.assertNotIn("libvirt", versions)


class Page(WithCheckout):
    def test_keeps_the_prose_and_updates_the_tables(self):
        self.assertEqual(1, self.checkout.run("--check")[0])
        self.checkout.run("--write")
        self.assertEqual(0, self.checkout.run("--check")[0])
        self.assertTrue(self.checkout.page().startswith("prose\n"))
        self.assertTrue(self.checkout.page().endswith("\nmore prose\n"))
        self.assertNotIn("old", self.checkout.page())

    def test_shows_every_declared_test_and_every_machine(self):
        text = self.checkout.run("--write")[1]
        for name in ("near", "before", "after", "real"):
            self.assertEqual({OWN, OTHER}, set(row_of(text, name)))
        self.assertIn("| many |  | no test | no test |", text)
        self.assertEqual(1, text.count("| two-pfs | debian-13 |"))

    def test_sums_up_by_machine_and_guest(self):
        self.checkout.run("--release", OWN, "--only", "before")
        line = next(each for each in self.checkout.page().splitlines() if each.startswith("| two-pfs | busybox |"))
        self.assertIn("1 passed, 1 not run", line)
        self.assertIn("1 not supported, 1 not needed", line)

    def test_a_bar_in_a_reason_does_not_end_the_cell(self):
        test = lab_tests.LabTest("a", "a", "long", 1, "m", ["none"], "a", [], [], [], {OTHER: "x | y"}, "")
        row = tested_table.row([tested_table.cell(test, OTHER, {})])
        self.assertEqual("| not supported: x &#124; y |", row)


class Durations(WithCheckout):
    def durations(self):
        return lab_tests.read_durations(self.checkout.folder / "tests/lab/durations")

    def test_are_recorded_when_the_test_has_passed_on_this_release(self):
        self.checkout.behave("before", "exit 1")
        self.checkout.run("--note", "alone")
        self.assertEqual({"near", "real"}, set(self.durations()))
        self.assertEqual("alone", self.durations()["near"].note)

    def test_with_a_note_replace_only_longer_ones(self):
        self.checkout.write("tests/lab/durations", "near 0 2020-01-01\nreal 9999 2020-01-01\n")
        self.checkout.run("--release", OWN, "--note", "shared")
        self.assertEqual("2020-01-01", self.durations()["near"].date)
        self.assertLess(self.durations()["real"].seconds, 9999)


class Commit(unittest.TestCase):
    def test_is_empty_without_git(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.dict("os.environ", {"GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}):
            self.assertEqual("", matrix.commit_of(folder))

    def test_is_marked_dirty_when_files_differ(self):
        with tempfile.TemporaryDirectory() as folder:
            git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder]
            for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "a"]):
                subprocess.run([*git, *command], check=True)
            self.assertRegex(matrix.commit_of(folder), r"^[0-9a-f]{12}$")
            for record in matrix.RECORDS:
                Path(folder, record).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, record).write_text("", encoding="utf-8")
            subprocess.run([*git, "add", "."], check=True)
            self.assertRegex(matrix.commit_of(folder), r"^[0-9a-f]{12}$", "its own records do not count")
            Path(folder, "file").write_text("", encoding="utf-8")
            subprocess.run([*git, "add", "file"], check=True)
            self.assertRegex(matrix.commit_of(folder), r"^[0-9a-f]{12}-dirty$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
