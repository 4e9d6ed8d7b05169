"""select_lab_tests_test.py DECLARED: the selection of long lab tests for CI."""

import contextlib
import io
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from loaded import CHECKOUT, load

import lab_tests
from rotation import GOLDEN, pack

select = load("select-lab-tests")
DECLARED = sys.argv.pop(1)

# Durations similar to the real ones; "pair" is two boots.
SECONDS = {"kills": 800, "mirror": 850, "verify": 800, "peer": 900, "files": 400, "apply": 300, "live": 170,
           "doctor": 90, "near": 80, "pair": 100, "topology": 40, "probe": 300, "settings": 360, "setup": 280}
BUDGET = 1000


def lab_test(name, group=None, part="long", seconds=600, needs=()):
    return lab_tests.LabTest(name, group or name, part, seconds, "two-pfs", ["busybox"], name, [], [], list(needs), {}, "")


def all_tests():
    tests = [lab_test(name) for name in SECONDS if name != "pair"]
    return tests + [lab_test("pair"), lab_test("pair_after", "pair"), lab_test("quick", part="short")]


def all_durations():
    durations = {name: lab_tests.Duration(seconds, "2026-01-01", "") for name, seconds in SECONDS.items()}
    return durations | {"pair_after": lab_tests.Duration(50, "2026-01-01", ""),
                        "unit": lab_tests.Duration(70, "2026-01-01", "")}


GROUPS = lab_tests.groups_of(each for each in all_tests() if each.part == "long")
COSTS = lab_tests.Costs(all_durations(), {"disks": lab_tests.Need(300, ["--guests"])})


def chosen_at(count, hits=None, budget=BUDGET):
    groups = select.in_turn(GROUPS, count * GOLDEN % 1, budget, COSTS)
    return select.choose(groups, budget, hits or {}, COSTS)


def names(chosen):
    return [group.name for group in chosen]


def longest_wait(counts, hits=None):
    """The largest number of consecutive merges that any test has to wait."""
    last, wait = dict.fromkeys(SECONDS, -1), 0
    for landing, count in enumerate(counts):
        for name in names(chosen_at(count, hits)):
            last[name] = landing
        wait = max(wait, max(landing - each for each in last.values()))
    return wait


class Budget(unittest.TestCase):
    def test_is_never_exceeded(self):
        for budget in (0, 30, 90, 500, 1000, 5000, 100000):
            for count in range(200):
                hits = {name: (0, "file") for name in list(SECONDS)[:count % len(SECONDS)]}
                self.assertLessEqual(COSTS.of(chosen_at(count, hits, budget)), budget)

    def test_is_used_up(self):
        left_out = min(SECONDS.values())
        for count in range(200):
            chosen = chosen_at(count)
            self.assertTrue("topology" in names(chosen) or COSTS.of(chosen) > BUDGET - left_out)

    def test_fits_everything_when_it_is_large(self):
        self.assertEqual(set(SECONDS), set(names(chosen_at(1, budget=100000))))

    def test_excludes_the_time_of_the_other_tests(self):
        self.assertEqual(600 + 70, select.fixed_seconds(all_tests(), COSTS))

    def test_a_part_runs_as_far_as_it_fits_beside_the_others(self):
        durations = all_durations() | {"sanitized": lab_tests.Duration(1000, "2026-01-01", "")}
        for slowness, seconds, wanted in ((1, 5000, 65), (1, 670 + 500, 25), (1, 670, 0), (1, 0, 0), (2, 740 + 1000, 25)):
            costs = lab_tests.Costs(durations, {}, slowness)
            self.assertEqual(wanted, select.percent_that_fits("sanitized", 65, seconds, all_tests(), costs))
        self.assertEqual(65, select.percent_that_fits("sanitized", 65, 0, all_tests(), COSTS), "not recorded")

    def test_counts_the_timeout_of_a_test_without_a_measurement(self):
        group = lab_tests.Group("new", [lab_test("new", seconds=777)])
        self.assertEqual(777, COSTS.of([group]))
        self.assertIn("not measured", select.describe(group, COSTS))

    def test_counts_two_boots_together(self):
        pair = next(each for each in GROUPS if each.name == "pair")
        self.assertEqual(150, COSTS.of([pair]))
        self.assertEqual(["lab.pair_disk", "lab.pair", "lab.pair_after"], pair.ctest_names())


    def test_counts_a_need_of_several_tests_once(self):
        one, other = (lab_tests.Group(name, [lab_test(name, seconds=50, needs=["disks"])]) for name in ("one", "other"))
        self.assertEqual([350, 400], [COSTS.of([one]), COSTS.of([one, other])])
        self.assertEqual([[one, other]], pack([one, other], 400, COSTS))
        self.assertEqual({one}, set(select.choose([one, other], 399, {}, COSTS)))
        self.assertFalse(COSTS.measured(one))


class Rotation(unittest.TestCase):
    def test_reaches_every_test_in_a_bounded_number_of_counts(self):
        for start in (0, 239, 100000):
            self.assertLessEqual(longest_wait(range(start, start + 500)), 8)

    def test_reaches_every_test_with_several_commits_per_merge(self):
        for step in range(2, 35):
            with self.subTest(step=step):
                self.assertLessEqual(longest_wait(range(0, 200 * step, step)), 64)

    def test_reaches_every_test_when_the_steps_are_irregular(self):
        chance = random.Random(1)
        counts = [0]
        for _ in range(500):
            counts.append(counts[-1] + chance.randint(1, 30))
        self.assertLessEqual(longest_wait(counts), 45)

    def test_is_the_same_for_the_same_count(self):
        self.assertEqual(chosen_at(17), chosen_at(17))

    def test_continues_while_everything_is_related(self):
        hits = {name: (0, "src/base/text.cpp") for name in SECONDS}
        self.assertLessEqual(longest_wait(range(500), hits), 8)

    def test_begins_with_the_run_at_the_given_place(self):
        one, other = (lab_tests.Group(name, [lab_test(name, seconds=50)]) for name in ("one", "other"))
        self.assertEqual([one, other], select.in_turn([one, other], 0.49, 60, COSTS))
        self.assertEqual([other, one], select.in_turn([one, other], 0.5, 60, COSTS))

    def test_packs_every_test_that_fits_into_one_run(self):
        runs = pack(GROUPS, BUDGET, COSTS)
        self.assertEqual(sorted(SECONDS), sorted(group.name for run in runs for group in run))
        self.assertTrue(all(COSTS.of(run) <= BUDGET for run in runs))


class Related(unittest.TestCase):
    def test_come_first_with_their_reason(self):
        for count in range(50):
            chosen = chosen_at(count, {"doctor": (3, "src/doctor/acs.cpp")})
            self.assertEqual("doctor", names(chosen)[0])
            reasons = ["related: src/doctor/acs.cpp"] + ["rotation"] * (len(chosen) - 1)
            self.assertEqual(reasons, list(chosen.values()))

    def test_are_ordered_by_the_age_of_the_change(self):
        hits = {"near": (5, "old"), "doctor": (0, "new"), "topology": (1, "middle")}
        self.assertEqual(["doctor", "topology", "near"], names(chosen_at(7, hits))[:3])

    def test_may_take_more_than_half_of_the_time_if_there_is_only_one(self):
        self.assertEqual("peer", names(chosen_at(7, {"peer": (0, "file")}))[0])

    def test_leave_half_of_the_time_to_the_others(self):
        hits = {name: (0, "file") for name in ("files", "apply", "probe")}
        self.assertEqual(1, sum(reason != "rotation" for reason in chosen_at(7, hits).values()))

    def test_are_found_by_directory_file_and_pattern(self):
        self.assertTrue(select.covers("src/doctor", "src/doctor/deep/acs.cpp"))
        self.assertTrue(select.covers("src/plan/near.cpp", "src/plan/near.cpp"))
        self.assertTrue(select.covers("src/plan/host_*", "src/plan/host_policy.cpp"))
        self.assertFalse(select.covers("src/doctor", "src/doctor.cpp"))
        self.assertFalse(select.covers("src/plan/near.cpp", "src/plan/nearby.cpp"))


class Repository:
    """A checkout with the test `near`, which covers src/near, and the pair `pair`."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.write("tests/lab/near.sh", "# A test.\n# covers: src/near\n")
        for name in ("pair", "pair_after"):
            self.write(f"tests/lab/{name}.sh", "# covers: src/pair*\n")
        self.write("tests/lab/durations", "# comment\nnear 80 2026-01-01\nunit 20 2026-01-01 alone\n")
        rows = ["name\tgroup\tpart\tseconds\tmachine\tguests\tscript\targuments\toptions\tneeds\tnot_on\tenough"]
        rows += [f"{name}\t{group}\tlong\t100\ttwo-pfs\tbusybox\t{name}\t\t\t\ttrixie: no such driver: igb\t"
                 for name, group in (("near", "near"), ("pair", "pair"), ("pair_after", "pair"))]
        self.write("build/tests/lab/declared", "\n".join(rows) + "\n")
        self.write("build/tests/lab/declared-needs", "name\tseconds\toptions\ndisks\t60\t--guests\n")

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def git(self, *arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main",
                    "-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"]
        subprocess.run(["git", *identity, "-C", self.folder, *arguments], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def commit(self, name):
        self.write(name, str(os.urandom(4)))
        self.git("add", "--all")
        self.git("commit", "-m", name)


def output_of(folder, seconds=200, *options):
    """The program's output for a checkout, and the expression for CTest."""
    exclusion = Path(folder) / "build/not-selected"
    printed = io.StringIO()
    command = ["select-lab-tests", str(seconds), "--checkout", str(folder), "--exclude-to", str(exclusion), *options]
    with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(printed):
        assert select.main() == 0
    return printed.getvalue(), exclusion.read_text(encoding="utf-8").strip()


class Checkouts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = Repository(Path(folder.name) / "checkout")

    def landed(self, *names_):
        self.repository.git("init")
        for name in names_:
            self.repository.commit(name)

    def clone(self, *options):
        folder = self.repository.folder.parent / "clone"
        self.repository.git("clone", *options, f"file://{self.repository.folder}", folder)
        return folder

    def test_without_git_rotate_by_the_day(self):
        text, exclusion = output_of(self.repository.folder)
        self.assertIn("no git history", text)
        self.assertNotIn("related", text)
        self.assertRegex(exclusion, r"^\^\(.*\)\$$")

    def test_inside_a_foreign_repository_rotate_by_the_day(self):
        subprocess.run(["git", "init", "-q", self.repository.folder.parent], check=True)
        self.assertIn("no git history", output_of(self.repository.folder)[0])

    def test_with_a_single_commit_nothing_is_related(self):
        self.landed("src/near/a.cpp")
        self.assertIn("commit 1\n", output_of(self.repository.folder)[0])
        self.assertNotIn("related", output_of(self.repository.folder)[0])

    def test_without_a_base_the_last_commits_are_the_change(self):
        self.landed("README", "src/near/a.cpp", "src/pair/b.cpp", "docs/c")
        text, exclusion = output_of(self.repository.folder, 300)
        self.assertIn("pair pair_after (200 s, not measured: timeout): related: src/pair/b.cpp", text)
        self.assertIn("near (80 s): rotation", text)
        self.assertEqual(r"^(lab\.prepare_disks)$", exclusion)

    def test_on_a_slow_machine_recorded_durations_count_more(self):
        self.repository.write("tests/lab/durations", "near 80 2026-01-01\nquick 20 2026-01-01\n")
        for measured, wanted in (("quick=20", "near (80 s)"), ("quick=60", "near (240 s)"), ("quick=1", "near (80 s)"),
                                 ("unknown=900", "near (80 s)")):
            text, _ = output_of(self.repository.folder, 900, "--measured", measured)
            self.assertIn(wanted, text, measured)
            self.assertEqual(measured == "quick=60", "tests take 3.0 times as long as recorded" in text)

    def test_the_part_that_fits_is_written_and_counts(self):
        self.repository.write("tests/lab/durations", "near 80 2026-01-01\npair 10 2026-01-01\nsanitized 1000 2026-01-01\n")
        file = self.repository.folder / "percent"
        for seconds, percent, left in ((1000, 50, 500), (500, 25, 250)):
            text, _ = output_of(self.repository.folder, seconds, "--fit", "sanitized=65", "--percent-to", str(file))
            self.assertEqual(f"{percent}\n", file.read_text(encoding="utf-8"))
            self.assertIn(f" of {left} s", text)

    def test_pairs_are_selected_together(self):
        self.landed("README", "src/near/a.cpp")
        text, exclusion = output_of(self.repository.folder, 120)
        self.assertIn("near (80 s): related: src/near/a.cpp", text)
        self.assertIn("too long for 100 s, run them by hand: pair pair_after (200 s", text)
        self.assertEqual(r"^(lab\.pair_disk|lab\.pair|lab\.pair_after|lab\.prepare_disks)$", exclusion)

    def test_what_a_chosen_test_needs_is_run_by_ctest(self):
        repository = self.repository
        repository.write("tests/lab/disky.sh", "# A test.\n")
        declared = repository.folder / "build/tests/lab/declared"
        repository.write("build/tests/lab/declared", declared.read_text(encoding="utf-8") +
                         "disky\tdisky\tlong\t100\ttwo-pfs\tbusybox\tdisky\t\t\tdisks\t\n")
        repository.write("build/CTestTestfile.cmake", """
            add_test(lab.disky true)
            add_test(lab.near true)
            add_test(lab.prepare_disks true)
            set_tests_properties(lab.disky PROPERTIES FIXTURES_REQUIRED disks)
            set_tests_properties(lab.prepare_disks PROPERTIES FIXTURES_SETUP disks)""")
        self.assertEqual(["lab.disky", "lab.near", "lab.prepare_disks"], self.ctest_runs(seconds=600))
        repository.write("tests/lab/durations", "disky 10000 2026-01-01\nnear 80 2026-01-01\n")
        self.assertEqual(["lab.near"], self.ctest_runs(seconds=600))

    def ctest_runs(self, seconds):
        _, exclusion = output_of(self.repository.folder, seconds)
        command = ["ctest", "--test-dir", self.repository.folder / "build", "-N", "--exclude-regex", exclusion]
        listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return sorted(re.findall(r"Test +#\d+: (\S+)", listed))

    def test_with_a_base_older_commits_do_not_count(self):
        self.landed("README", "src/near/a.cpp")
        clone = Repository(self.clone())
        clone.commit("src/pair/b.cpp")
        self.assertIn("related: src/pair/b.cpp", output_of(clone.folder, 300)[0])
        self.assertNotIn("related: src/near", output_of(clone.folder, 100)[0])

    def test_a_base_that_is_head_itself_is_ignored(self):
        self.landed("README", "src/near/a.cpp")
        clone = Repository(self.clone())
        self.assertIn("related: src/near/a.cpp", output_of(clone.folder, 300)[0])

    def test_in_a_shallow_clone_rotate_by_the_commit(self):
        self.landed("README", "src/near/a.cpp")
        clone = Repository(self.clone("--depth", "1"))
        text, _ = output_of(clone.folder, 300)
        self.assertIn("shallow clone: by commit", text)
        self.assertNotIn("related", text)

    def test_a_shallow_clone_uses_the_commits_that_it_has(self):
        self.landed("README", "src/near/a.cpp", "docs/b")
        clone = Repository(self.clone("--depth", "2"))
        self.assertNotIn("related", output_of(clone.folder, 300)[0])
        self.repository.commit("src/near/c.cpp")
        self.repository.commit("docs/d")
        clone.git("fetch", "--depth", "3", "origin", "main")
        clone.git("reset", "--hard", "FETCH_HEAD")
        self.assertIn("related: src/near/c.cpp", output_of(clone.folder, 300)[0])


class DeclaredTests(unittest.TestCase):
    def test_have_names_that_fit_ctest_expressions(self):
        groups = lab_tests.groups_of(lab_tests.read_declared(DECLARED))
        for group in groups:
            for name in group.ctest_names():
                self.assertRegex(name, r"^lab\.[A-Za-z0-9_.-]+$")

    def test_are_all_selected_at_some_count(self):
        tests = [each for each in lab_tests.read_declared(DECLARED) if each.part == "long"]
        durations = lab_tests.read_durations(CHECKOUT / "tests/lab/durations")
        costs = lab_tests.Costs(durations, lab_tests.read_needs(DECLARED))
        groups = lab_tests.groups_of(tests)
        budget = max(costs.of([each]) for each in groups)
        seen = set()
        for count in range(200):
            turn = select.in_turn(groups, count * GOLDEN % 1, budget, costs)
            seen.update(names(select.choose(turn, budget, {}, costs)))
        self.assertEqual({each.name for each in groups}, seen)


if __name__ == "__main__":
    unittest.main()
