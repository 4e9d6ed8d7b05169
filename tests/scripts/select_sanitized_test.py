"""The selection of programs that CI builds and runs with sanitizers."""

import contextlib
import io
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from loaded import CHECKOUT, load
from rotation import GOLDEN

select = load("select-sanitized")
PERCENT = int(re.search(r"^sanitized_percent=(\d+)$", (CHECKOUT / "scripts/test").read_text(encoding="utf-8"), re.MULTILINE)[1])


class WithCheckout(unittest.TestCase):
    """The stages base (100 lines), host (200) and, in the directory of host, inventory (50), which link what is before them;
    unit tests of each and of hook, which links inventory; the fuzz target `reply` of host."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.stage("base", "base", 100, "")
        self.stage("host", "host", 200, "vfpass_base vfpass_libnl")
        self.stage("inventory", "host/inventory", 50, "vfpass_base vfpass_host")
        self.write("src/hook/CMakeLists.txt", "add_executable(hook)  # vfpass_base\ntarget_link_libraries(hook PRIVATE vfpass_inventory)")
        self.write("tests/fake/CMakeLists.txt", "target_link_libraries(vfpass_fake PUBLIC vfpass_base)")
        for name in ("base", "host", "inventory"):
            self.write(f"tests/unit/{name}/CMakeLists.txt", f"vfpass_unit_tests({name})")
            self.write(f"tests/unit/{name}/a_test.cpp", "\n" * 10)
        self.write("tests/unit/hook/CMakeLists.txt", "target_link_libraries(unit-hook PRIVATE vfpass_inventory)")
        self.write("tests/fuzz/CMakeLists.txt", "function(vfpass_fuzz_target name stage)\nvfpass_fuzz_target(reply host)\n")
        self.write("tests/fuzz/reply.cpp", "\n" * 30)
        self.checkout = select.Checkout(self.root)
        self.costs = select.Costs(self.checkout)
        self.programs = {each.name: each for each in self.checkout.programs}

    def stage(self, name, folder, lines, links):
        self.write(f"src/{folder}/CMakeLists.txt", f"vfpass_stage({name} LINKS {links})\n")
        self.write(f"src/{folder}/a.cpp", "\n" * lines)

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def related(self, *commits):
        return select.related(self.checkout, commits)


class Stages(WithCheckout):
    def test_program_needs_what_it_links_directly_or_not(self):
        self.assertEqual({"base": {"base"}, "host": {"base", "host"}, "inventory": {"base", "host", "inventory"},
                          "hook": {"base", "host", "inventory", "hook"}, "mutations-host": {"base", "host"}},
                         {name: set(program.stages) for name, program in self.programs.items()})

    def test_targets_need_what_they_link_themselves(self):
        with open(self.root / "tests/fuzz/CMakeLists.txt", "a", encoding="utf-8") as file:
            file.write("target_link_libraries(fuzz-reply PRIVATE vfpass_inventory)\n")
        self.assertIn("inventory", select.Checkout(self.root).programs[-1].stages)

    def test_cost_counts_a_stage_once(self):
        tests = 20 + select.COST_OF_A_PROGRAM
        base, inventory = self.programs["base"], self.programs["inventory"]
        self.assertEqual(0, self.costs.of([]))
        self.assertEqual(100 + tests, self.costs.of([base]))
        self.assertEqual(350 + 2 * tests, self.costs.of([base, inventory]))
        self.assertEqual(300 + 60 + select.COST_OF_A_PROGRAM, self.costs.of([self.programs["mutations-host"]]))

    def test_file_belongs_to_the_innermost_stage(self):
        for file, stage in (("src/host/a.cpp", "host"), ("src/host/inventory/a.cpp", "inventory"), ("src/new.cpp", ""),
                            ("tests/unit/base/a_test.cpp", "base"), ("tests/unit/repeat_command.cpp", ""),
                            ("tests/fuzz/reply.cpp", "host"), ("tests/fuzz/corpus/reply/cut", "host"),
                            ("tests/fuzz/target.cpp", ""), ("include/vfpass/lease.hpp", "model"), ("README.md", ""),
                            ("tests/fake/fake_kernel.cpp", "fake")):
            self.assertEqual(stage, self.checkout.owner_of(file), file)


class Related(WithCheckout):
    def test_own_files_count_more_than_those_of_linked_stages(self):
        hits = self.related(["src/base/a.cpp"], ["src/host/a.cpp"])
        self.assertEqual(((0, 0), "src/base/a.cpp"), hits["base"])
        self.assertEqual(((0, 1), "src/host/a.cpp"), hits["host"])
        self.assertEqual(((0, 1), "src/host/a.cpp"), hits["mutations-host"])
        self.assertEqual(((1, 0), "src/base/a.cpp, which it links"), hits["inventory"])

    def test_what_is_linked_only_indirectly_does_not_count(self):
        self.assertNotIn("hook", self.related(["src/base/a.cpp"]))

    def test_tests_of_a_linked_stage_do_not_count(self):
        self.assertEqual({"base"}, set(self.related(["tests/unit/base/a_test.cpp"])))
        self.assertEqual({"host", "mutations-host"}, set(self.related(["tests/fuzz/corpus/reply/cut"])))

    def test_files_of_no_stage_do_not_count(self):
        self.assertEqual({}, self.related(["README.md", ""], []))


class Choice(WithCheckout):
    def choose(self, place, budget, hits):
        return select.choose(self.checkout.programs, place, budget, hits, self.costs)

    def test_on_a_slow_machine_only_what_fits_has_its_turn(self):
        least = self.costs.of([self.programs["base"]])
        for place in (0, 0.3, 0.9):
            self.assertEqual({self.programs["base"]: "rotation"}, self.choose(place, least, {}))
        self.assertEqual({}, self.choose(0, least - 1, {"base": ((0, 0), "f")}))

    def test_changed_come_before_others(self):
        budget = self.costs.of(self.programs.values()) - 1
        chosen = self.choose(0, budget, {"base": ((0, 0), "f")})
        self.assertEqual(["rotation", "related: f"], list(dict.fromkeys(chosen.values()))[:2])
        self.assertLessEqual(self.costs.of(chosen), budget)
        self.assertEqual({"rotation", "fits"}, set(self.choose(0, budget, {}).values()))

    def test_everything_runs_if_it_fits(self):
        self.assertEqual(set(self.checkout.programs), set(self.choose(0, 10**6, {})))


class Output(WithCheckout):
    def output(self, percent):
        command = ["select-sanitized", str(percent), "--checkout", str(self.root), "--programs-to", str(self.root / "programs"),
                   "--exclude-to", str(self.root / "excluded")]
        printed = io.StringIO()
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(printed):
            self.assertEqual(0, select.main())
        return printed.getvalue(), *((self.root / each).read_text(encoding="utf-8") for each in ("programs", "excluded"))

    def test_selected_and_excluded_are_all(self):
        text, programs, excluded = self.output(50)
        left_out = re.fullmatch(r"\^sanitized\\\.\(([a-z|-]+)\)\$\n", excluded)[1].split("|")
        self.assertEqual(sorted(self.programs), sorted(programs.split() + left_out))
        self.assertIn(f"not now: {', '.join(left_out)}", text)

    def test_excludes_nothing_if_everything_fits(self):
        text, programs, excluded = self.output(200)
        self.assertEqual((sorted(self.programs), "^$\n"), (sorted(programs.split()), excluded))
        self.assertNotIn("not now", text)

    def test_builds_nothing_if_nothing_fits(self):
        text, programs, excluded = self.output(1)
        self.assertRegex(text, r"nothing this time, because even base takes about \d+ % of the build")
        self.assertEqual("", programs)
        for name in ("build", "fuzz", "mutations-host", "host"):
            self.assertRegex(f"sanitized.{name}", excluded.strip())
        self.assertNotRegex("lab.sanitized", excluded.strip())


class OurCheckout(unittest.TestCase):
    def test_every_program_has_its_turn(self):
        checkout = select.Checkout(CHECKOUT)
        costs = select.Costs(checkout)
        whole = costs.of(checkout.programs)
        budget = whole * PERCENT // 100
        for step in (1, 2, 3, 5, 7, 20):
            seen = set()
            for commit in range(0, 20 * step, step):
                chosen = select.choose(checkout.programs, commit * GOLDEN % 1, budget, {}, costs)
                self.assertLessEqual(costs.of(chosen), budget)
                seen.update(chosen)
            self.assertEqual(set(checkout.programs), seen, f"every {step} commits")

    def test_programs_are_those_of_cmake(self):
        text = (CHECKOUT / "tests/CMakeLists.txt").read_text(encoding="utf-8")
        declared = re.search(r"set\(unit_test_stages([^)]*)\)", text)[1].split()
        programs = [each.name for each in select.Checkout(CHECKOUT).programs if not each.name.startswith("mutations-")]
        self.assertEqual(sorted([*declared, "hook", "fuzz"]), sorted(programs))

    def test_every_program_needs_its_own_stage(self):
        for program in select.Checkout(CHECKOUT).programs:
            if program.name != "fuzz":
                self.assertIn(program.owner, program.stages)
                self.assertIn("base", program.stages)


if __name__ == "__main__":
    unittest.main(argv=["select_sanitized_test"])
