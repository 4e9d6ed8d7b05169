"""scripts/test, .ci/run and scripts/check-format: the programs that they call, the order, and the exit status. CTest,
the build and clang-format are replaced by stubs."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from loaded import CHECKOUT

PRINTS_ITS_CALL = '#!/bin/bash\necho "$(basename "$0") $*"\n'
SELECTS_PLAN_AND_HOST = r"""#!/bin/bash
printf 'plan\nhost\n' >"$2"
echo '^sanitized\.(apply)$' >"$4"
echo "select-sanitized $5"
"""
DECLARED = """name\tgroup\tpart\tseconds\tmachine\tguests\tscript\targuments\toptions\tneeds\tnot_on\tenough
quick\tquick\tshort\t600\ttwo-pfs\tbusybox\tquick\t\t\t\t\t
near\tnear\tlong\t400\tfunctions\tnone\tnear\t\t\t\t\t
endless\tendless\tlong\t90000\ttwo-pfs\tbusybox\tendless\t\t\t\t\t
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout = Path(folder.name)
        for name in (".ci/run", "scripts/test", "scripts/select-lab-tests", "scripts/lab_tests.py", "scripts/rotation.py",
                     "scripts/check-format"):
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, self.checkout / name)
        for name in ("scripts/install-packages", "scripts/build", "scripts/check-layers", "scripts/check-language",
                     "scripts/check-shell", "lab/prepare", "lab/run", "bin/ctest"):
            self.write(name, PRINTS_ITS_CALL).chmod(0o755)
        self.write("scripts/select-sanitized", SELECTS_PLAN_AND_HOST).chmod(0o755)
        self.write("bin/clang-format", "#!/bin/bash\necho 'Debian clang-format version 14.0.6'\n").chmod(0o755)
        for folder in ("include", "src", "tests", "bench"):
            (self.checkout / folder).mkdir(exist_ok=True)
        self.write("bin/nproc", "#!/bin/bash\necho 2\n").chmod(0o755)
        self.write("build/tests/lab/declared", DECLARED)
        self.write("build/tests/lab/declared-needs", "name\tseconds\toptions\n")
        self.write("tests/lab/durations", "")
        for name in ("quick", "near", "endless"):
            self.write(f"tests/lab/{name}.sh", "# covers: src\n")

    def write(self, name, text):
        file = self.checkout / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def call(self, *command):
        """The exit status, and the output without the name of the temporary directory."""
        environment = dict(os.environ, PATH=f"{self.checkout / 'bin'}:{os.environ['PATH']}")
        environment.pop("VFPASS_SANITIZED", None)  # of the scripts/test that runs this test
        done = subprocess.run([self.checkout / command[0], *command[1:]], env=environment, stdout=subprocess.PIPE,
                              text=True, check=False)
        return done.returncode, done.stdout.replace(f"{self.checkout}/", "").splitlines()

    def test_everything_runs_without_a_selection(self):
        for option, tests in (("", "OFF"), ("--all", "ON")):
            status, lines = self.call("scripts/test", *([option] if option else []), "-L", "unit")
            self.assertEqual(0, status)
            self.assertEqual(["install-packages ", f"build build -DVFPASS_ALL_TESTS={tests}", "prepare "], lines[:-1])
            self.assertEqual("ctest --test-dir build --output-on-failure --no-tests=error --parallel 2 "
                             "--output-junit build/test-results.xml -L unit", lines[-1])

    def test_ci_prints_its_selection_and_runs_ctest_once_and_last(self):
        status, lines = self.call(".ci/run")
        self.assertEqual(0, status)
        self.assertIn("build build -DVFPASS_ALL_TESTS=ON", lines)
        self.assertIn("  near (400 s, not measured: timeout): rotation", lines)
        self.assertTrue([line for line in lines if "endless (90000 s, not measured: timeout)" in line])
        self.assertIn(r"--label-exclude tidy|packages --exclude-regex ^(lab\.endless)$|^sanitized\.(apply)$", lines[-1])
        self.assertEqual(1, sum(line.startswith("ctest ") for line in lines))

    def test_only_selected_programs_are_built_with_sanitizers(self):
        self.write("scripts/select-lab-tests", PRINTS_ITS_CALL).chmod(0o755)
        self.write("build/not-selected", "^$")
        self.write("build/sanitized-percent", "40")
        self.write("bin/ctest", f'#!/bin/bash\n{self.checkout}/scripts/check-sanitized {self.checkout}/sanitized\n')
        shutil.copy(CHECKOUT / "scripts/check-sanitized", self.checkout / "scripts/check-sanitized")
        lines = self.call("scripts/test", "--within", "60")[1]
        self.assertIn("build --target tests-plan --target tests-host sanitized", lines)
        self.assertIn("select-sanitized 40", lines)
        self.assertTrue([line for line in lines if "--fit sanitized=65 " in line])
        self.assertIn("build --target unit-tests --target fuzz-targets sanitized", self.call("scripts/test", "--all")[1])

    def test_parallel_tests_have_more_time(self):
        self.write("scripts/select-lab-tests", PRINTS_ITS_CALL).chmod(0o755)
        self.write("build/not-selected", "^$")
        self.write("build/sanitized-percent", "40")
        self.write("lab/run", "#!/bin/bash\nexit 1\n").chmod(0o755)
        for cores, wanted in ((1, 60), (2, 108), (4, 216)):
            self.write("bin/nproc", f"#!/bin/bash\necho {cores}\n")
            call = next(line for line in self.call("scripts/test", "--within", "60")[1] if "not-selected" in line)
            self.assertAlmostEqual(wanted * 60, int(call.split()[-1]), delta=60)

    def test_the_selection_knows_how_long_a_test_took(self):
        self.write("scripts/select-lab-tests", PRINTS_ITS_CALL).chmod(0o755)
        self.write("build/not-selected", "^$")
        self.write("build/sanitized-percent", "40")
        self.write("lab/run", "#!/bin/bash\n[ \"$(basename \"$1\")\" != netdevsim.sh ] || sleep 2\n").chmod(0o755)
        call = next(line for line in self.call("scripts/test", "--within", "60")[1] if "not-selected" in line)
        self.assertRegex(call, r"--measured netdevsim=[2-9] ")

    def test_without_time_left_the_long_part_is_omitted(self):
        _, lines = self.call("scripts/test", "--within", "0")
        self.assertIn(r"--exclude-regex ^(lab\.near|lab\.endless)$|^sanitized\.(apply)$", lines[-1])

    def test_ci_checks_the_style_before_it_builds(self):
        lines = self.call(".ci/run")[1]
        for check in ("check-layers ", "check-language ", "check-shell "):
            self.assertLess(lines.index(check), lines.index("build build -DVFPASS_ALL_TESTS=ON"))
        self.write("scripts/check-layers", "#!/bin/bash\nexit 1\n")
        status, lines = self.call(".ci/run")
        self.assertEqual(1, status)
        self.assertNotIn("build build -DVFPASS_ALL_TESTS=ON", lines)

    def test_a_failure_fails_ci(self):
        self.write("bin/ctest", "#!/bin/bash\nexit 8\n")
        self.assertEqual(8, self.call(".ci/run")[0])

    def test_a_failed_selection_fails_ci(self):
        self.write("build/tests/lab/declared", "nonsense\n1\n")
        status, lines = self.call(".ci/run")
        self.assertNotEqual(0, status)
        self.assertFalse([line for line in lines if line.startswith("ctest ")])

    def test_only_clang_format_14_checks_the_format(self):
        for folder in ("include", "src", "tests", "bench"):
            self.write(f"{folder}/a.cpp", "")
        for release, wanted in ((14, 0), (19, 77)):
            self.write("bin/clang-format", f"#!/bin/bash\necho 'Debian clang-format version {release}.1.0 (2)'\n").chmod(0o755)
            self.assertEqual(wanted, self.call("scripts/check-format")[0])
        self.write("bin/clang-format", "#!/bin/bash\n[ $1 != --version ] || { echo version 14.0.6; exit; }\nexit 1\n")
        self.assertNotIn(self.call("scripts/check-format")[0], (0, 77))


if __name__ == "__main__":
    unittest.main(argv=["run_tests_test"])
