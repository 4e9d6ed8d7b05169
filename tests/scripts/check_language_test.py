"""scripts/check-language: what it reports, and what it leaves alone."""

import tempfile
import unittest
from pathlib import Path

from loaded import load

language = load("check-language")


class Language(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.language = Path(directory.name)
        (self.language / "phrases").write_text('# PATTERN => ADVICE\n\\broads?\\b => "path"\n', encoding="utf-8")
        (self.language / "words").write_text("sysfs\n", encoding="utf-8")

    def check(self, name, text):
        checker = language.Checker(self.language)
        checker.check(name, text)
        checker.check_spelling()
        return checker.problems

    def assert_reported(self, wanted, name, text):
        problems = self.check(name, text)
        self.assertTrue([problem for problem in problems if wanted in problem], problems)

    def test_reports_phrases_in_comments_messages_and_prose(self):
        self.assert_reported("src/a.cpp:2", "src/a.cpp", "int a;\n// The road of a GPU.\n")
        self.assert_reported('"road": "path"', "src/a.cpp", 'print("the road of a GPU");\n')
        self.assert_reported("docs/a.md:1", "docs/a.md", "The road of a GPU.\n")

    def test_reports_phrases_across_lines_of_a_comment(self):
        (self.language / "phrases").write_text("\\bput back\\b => restore\n", encoding="utf-8")
        self.assert_reported("restore", "src/a.cpp", "/* It is put\n   back. */\n")

    def test_ignores_code(self):
        for name, text in (("src/a.cpp", "int road;  // `road` and /sys/road\n"), ("docs/a.md", "    road\n\n`road` [x](road.md)\n"),
                           ("scripts/a.sh", "#!/bin/road\nroad=1\n")):
            self.assertEqual([], self.check(name, text))

    def test_reports_spelling_and_accepts_our_terms(self):
        self.assert_reported("spelling: functoin", "src/a.cpp", "// A functoin in sysfs.\n")

    def test_reports_the_form_of_messages(self):
        self.assert_reported("capital letter", "src/a.cpp", 'throw Error("Cannot read", "try again");\n')
        self.assert_reported("full stop", "src/a.cpp", 'throw Error("cannot read",\n            "try again.");\n')
        self.assert_reported("contraction", "src/a.cpp", """throw Error(name + ": doesn't exist");\n""")
        self.assertEqual([], self.check("src/a.cpp", 'throw Error("PF " + name + ": no VFs", "see `vfpass pf list`");\n'))

    def test_reports_help_in_lower_case(self):
        self.assert_reported("help begins in lower case", "src/a.cpp", 'app.add_flag("--live", live, "only the running domain");\n')

    def test_reports_test_names_in_another_case(self):
        self.assert_reported("upper camel case", "tests/unit/a_test.cpp", "TEST(Plan, refusesAll) {}\n")


if __name__ == "__main__":
    unittest.main(argv=["check_language_test"])
