"""Which commands scripts/tour reads from a Markdown file, and which differences it reports."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from loaded import CHECKOUT

TOUR = CHECKOUT / "scripts/tour"


def page(*lines):
    return "\n".join(["# Page", "    $ exit 7", "<!-- tour: begin -->", *lines, "<!-- tour: end -->", "The end.", ""])


class Tour(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def run_page(self, text, functions=""):
        """Runs the tour with these shell functions. Returns the result and the new page."""
        (self.directory / "page.md").write_text(text, encoding="utf-8")
        new = self.directory / "new.md"
        script = f"source {TOUR}; {functions}\nrun_tour page.md {new}"
        result = subprocess.run(["bash", "-uo", "pipefail", "-c", script], cwd=self.directory, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        return result, new.read_text(encoding="utf-8")

    def passes(self, *lines, functions=""):
        result, new = self.run_page(page(*lines), functions)
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        self.assertEqual(page(*lines), new)
        return result.stdout

    def fails(self, problem, *lines, functions=""):
        result, new = self.run_page(page(*lines), functions)
        self.assertEqual(1, result.returncode)
        self.assertIn(problem, result.stderr)
        return new

    def test_runs_commands_and_compares_their_output(self):
        out = self.passes("Say it:", "", "    $ echo hello", "    hello", "    $ echo '  two'; echo words", "      two", "    words", "")
        self.assertEqual("Say it:\n\n    $ echo hello\n    hello\n    $ echo '  two'; echo words\n      two\n    words\n\n", out)

    def test_keeps_empty_lines_within_output(self):
        self.passes("    $ echo a; echo; echo b", "    a", "", "    b", "", "Then:", "", "    $ true")

    def test_ignores_empty_lines_at_the_end_of_output(self):
        self.passes("    $ echo a; echo", "    a", "")

    def test_runs_all_commands_in_one_shell(self):
        self.passes("    $ word=one; cd /", "", "Later:", "", "    $ echo $word; pwd", "    one", "    /")

    def test_compares_standard_error_too(self):
        self.passes("    $ echo warning >&2", "    warning")

    def test_reports_a_different_line_and_writes_the_real_one(self):
        new = self.fails("-helo\n+hello", "    $ echo hello", "    helo")
        self.assertEqual(page("    $ echo hello", "    hello"), new)

    def test_reports_missing_and_additional_lines(self):
        self.fails("+two", "    $ printf 'one\\ntwo\\n'", "    one")
        self.fails("-two", "    $ echo one", "    one", "    two")

    def test_compares_backslashes_as_they_are(self):
        self.passes(r"    $ printf '%s\n' 'a\tb\\c'", r"    a\tb\\c")

    def test_shortens_output_at_three_dots(self):
        self.passes("    $ seq 9", "    1", "    2", "    ...", "    9")
        self.passes("    $ seq 9", "    1", "    ...")
        self.fails("+8", "    $ seq 9", "    1", "    ...", "    7", "    9")

    def test_keeps_three_dots_when_it_writes_the_real_output(self):
        new = self.fails("+2", "    $ seq 9", "    1", "    x", "    ...")
        self.assertEqual(page("    $ seq 9", "    1", "    2", "    ..."), new)

    def test_reports_a_failure_that_is_not_shown(self):
        self.fails("exit code 3", "    $ (exit 3)", "    $ echo a", "    a")
        self.fails("exit code 3", "    $ (exit 3)")

    def test_shows_the_exit_code_of_the_command_before(self):
        self.passes("    $ (exit 3)", "    $ echo $?", "    3")
        self.fails("-4\n+3", "    $ (exit 3)", "    $ echo $?", "    4")

    def test_calls_functions_that_wait(self):
        functions = "wait_for() { ready=$1; }"
        self.passes("<!-- tour: wait_for guest -->", "    $ echo $ready", "    guest", functions=functions)
        self.fails("failed: wait_for guest", "<!-- tour: wait_for guest -->", "    $ true", functions="wait_for() { false; }")

    def test_refuses_other_hidden_commands(self):
        self.fails("not a function that waits: touch", "<!-- tour: touch x -->", "    $ true")
        self.assertFalse((self.directory / "x").exists())
        self.fails("not a function that waits: wait_for_nothing", "<!-- tour: wait_for_nothing -->", "    $ true")

    def test_reports_output_without_a_command(self):
        self.fails("output without a command:     a", "    a", "", "    $ true")

    def test_refuses_a_page_without_a_tour(self):
        for text in ("# Page\n    $ true\n", "<!-- tour: begin -->\n    $ true\n", page("Nothing.")):
            with self.subTest(text):
                self.assertEqual(1, self.run_page(text)[0].returncode)

    def test_reads_the_tour_of_the_readme(self):
        text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
        tour = text.partition("<!-- tour: begin -->")[2].partition("<!-- tour: end -->")[0]
        commands = [line[6:] for line in tour.splitlines() if line.startswith("    $ ")]
        for command in ("vfpass plan train0", "vfpass attach train0", "virsh start train0", "vfpass detach train0"):
            self.assertIn(command, commands)


if __name__ == "__main__":
    unittest.main(argv=["tour_test"])
