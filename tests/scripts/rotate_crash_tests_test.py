"""The slices of the crash tests that CI runs in rotation."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from loaded import load
from rotation import GOLDEN

rotate = load("rotate-crash-tests")
SCENARIOS = [f"scenario-{number}" for number in range(36)]


def sweep_at(commit):
    return rotate.sweep_arguments(commit * GOLDEN % 1, SCENARIOS)[0]


def pairs_at(commit):
    return rotate.schedule_arguments(commit * GOLDEN % 1)[0]


class Slices(unittest.TestCase):
    def test_same_commit_same_slice(self):
        self.assertEqual(sweep_at(700), sweep_at(700))

    def test_every_part_of_every_scenario_has_its_turn(self):
        wanted = {(name, str(part)) for name in SCENARIOS for part in range(rotate.PARTS)}
        for step in (1, 2, 3, 5, 7):
            seen = {(each[-1], each[each.index("--part") + 1]) for each in map(sweep_at, range(0, 400 * step, step))}
            self.assertEqual(wanted, seen, f"every {step} commits")

    def test_visits_of_a_slice_kill_recover_at_different_changes(self):
        kills = {each[each.index("--second") + 1] for each in map(sweep_at, range(5000))
                 if each[-1] == SCENARIOS[3] and each[each.index("--part") + 1] == "0"}
        self.assertGreater(len(kills), rotate.KILLS_OF_RECOVER / 2)
        self.assertTrue(all(1 <= int(each) <= rotate.KILLS_OF_RECOVER for each in kills))

    def test_every_pair_has_its_turn(self):
        wanted = {(str(pair), str(step)) for pair in range(rotate.PAIRS) for step in range(rotate.PARTS_OF_A_PAIR)}
        self.assertEqual(wanted, {(each[each.index("--part") + 1], each[each.index("--first-step") + 1])
                                  for each in map(pairs_at, range(6000))})

    def test_end_of_the_circle_is_the_last_slice(self):
        self.assertEqual(9, rotate.slice_at(1.0, 10))
        self.assertEqual(0, rotate.slice_at(0.0, 10))


class ExitStatus(unittest.TestCase):
    """The exit status and output with a program that does `script`."""

    def run_with(self, script):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "vfpass-crash-schedule"
            program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            program.chmod(0o755)
            printed = io.StringIO()
            with mock.patch.object(sys, "argv", ["rotate-crash-tests", str(program)]), contextlib.redirect_stdout(printed):
                return rotate.main(), printed.getvalue()

    def test_success_prints_commands_to_repeat(self):
        code, output = self.run_with("exit 0")
        self.assertEqual(0, code)
        self.assertRegex(output, r"repeat with: \S+vfpass-crash-schedule --pairs --part \d+ --parts 576 --first-step [0-3] --every 4")
        self.assertRegex(output, r"repeat with: \S+vfpass-crash-schedule --seed \d+ --runs \d+")

    def test_a_violation_fails(self):
        self.assertEqual(1, self.run_with('[ "$1" != --pairs ]')[0])

    def test_a_crash_fails(self):
        self.assertNotEqual(0, self.run_with("kill -SEGV $$")[0])

    def test_skipped_without_root(self):
        self.assertEqual(77, self.run_with("exit 77")[0])


if __name__ == "__main__":
    unittest.main(argv=["rotate_crash_tests_test"])
