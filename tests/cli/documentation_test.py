"""documentation_test.py VFPASS: every vfpass command in the documentation exists, with its options."""

import functools
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

VFPASS = sys.argv.pop(1) if len(sys.argv) > 1 else "vfpass"
CHECKOUT = Path(__file__).resolve().parent.parent.parent
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
CODE = re.compile(r"^(?: {4,}|\t)[^\n]*$|^```.*?^```|`(?:[^`\n]|\n(?!\n))*`", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"(?:^ *|[$`(|;&] *|\bsudo +)vfpass((?: +[^\s|&;`#]+)+)", re.MULTILINE)
# A word, not a placeholder such as VM, nor the name of something, such as the metadata of vfpass.
NAME = re.compile(r"[a-z][a-z-]+")
WITH_VALUE = {"--config-dir", "--state-dir", "--run-dir", "--connect", "--sysroot", "--color"}
SHORT = {"-v", "-q", "-h"}
GROUPS = ("host", "pf", "vf", "hook", "quarantine")
# Not offered to shells.
HIDDEN = {"complete"}


@functools.lru_cache(maxsize=None)
def offered(*words):
    """What can follow these words: commands, or the options if the last word begins with a dash."""
    result = subprocess.run([VFPASS, "complete", "--", *words], stdout=subprocess.PIPE, text=True, check=True)
    return {line.partition("\t")[0].rstrip("=") for line in result.stdout.splitlines()}


@functools.lru_cache(maxsize=None)
def options(*command):
    """Those offered to shells, and those that only --help-all lists."""
    names = offered(*command, "--")
    if "--help-all" in names:
        result = subprocess.run([VFPASS, *command, "--help-all"], stdout=subprocess.PIPE, text=True, check=True)
        names = names | set(re.findall(r"^  (--[\w-]+)", result.stdout, re.MULTILINE))
    return names


def commands():
    return offered("") | HIDDEN


def leaves():
    """Every command, those of groups with both words."""
    for name in offered("") - {"help"}:
        inner = offered(name, "") if name in GROUPS else set()
        yield from ([f"{name} {each}" for each in inner] if inner else [name])


def conventions():
    """Of each row of the table: verdict and reason."""
    text = (CHECKOUT / "docs/commands.md").read_text(encoding="utf-8").partition("## Conventions")[2]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: (row[1], " | ".join(row[2:])) for row in rows[1:]}


def problem_of(words):
    """Why this is no call of vfpass, or None."""
    command, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("--"):
            option = word.partition("=")[0].rstrip("],.")
            if option != "--" and option not in options(*command):
                return f"{' '.join(command) or 'vfpass'} has no option {option}"
            skip = not command and word in WITH_VALUE
        elif word.startswith("-") and word.rstrip(",") in SHORT:
            continue
        elif not command:
            if not NAME.fullmatch(word):
                return None
            if word not in commands():
                return f"no command {word}"
            command.append(word)
        elif command[0] in GROUPS and len(command) == 1:
            if word not in offered(command[0], ""):
                return f"no command {command[0]} {word}"
            command.append(word)
    return None


def calls(text):
    for code in CODE.finditer(text):
        # Comments of shell commands are prose.
        without_comments = re.sub(r"(?:^|\s)#.*$", "", code[0], flags=re.MULTILINE)
        for call in CALL.finditer(without_comments):
            yield call[1].split()


class DocumentedCommands(unittest.TestCase):
    def test_every_documented_command_exists(self):
        found = 0
        for file in PAGES:
            with self.subTest(str(file.relative_to(CHECKOUT))):
                words = list(calls(file.read_text(encoding="utf-8")))
                found += len(words)
                problems = [(problem_of(each), " ".join(each)) for each in words]
                self.assertEqual([], [each for each in problems if each[0]])
        self.assertGreater(found, 200)

    def test_every_command_is_documented(self):
        text = (CHECKOUT / "docs/commands.md").read_text(encoding="utf-8")
        missing = [each for each in offered("") if not re.search(rf"`(?:vfpass )?{each}\b", text)]
        self.assertEqual([], missing)

    def test_each_convention_is_a_yes_or_a_reason(self):
        rows = conventions()
        self.assertGreaterEqual(len(rows), 13)
        for name, (verdict, reason) in rows.items():
            with self.subTest(name):
                self.assertRegex(verdict, r"^(yes|only |no)")
                self.assertTrue(reason)
                for exception in re.findall(r"`([a-z ]+)`", verdict):
                    self.assertIn(f"`{exception}`", reason, "the reason of the exception")

    def test_conventions_name_every_command_with_the_option(self):
        for name, option, others in (("plan", "--dry-run", set()), ("watch", "--watch", set()), ("all", "--all", {"doctor"})):
            having = {command for command in leaves() if option in options(*command.split())} - others
            with self.subTest(name):
                self.assertTrue(having)
                text = conventions()[name][1]
                self.assertEqual([], [command for command in sorted(having) if not re.search(rf"`(vfpass )?{command}\b", text)])

    def test_number_of_checks(self):
        result = subprocess.run([VFPASS, "explain", "--json"], stdout=subprocess.PIPE, text=True, check=True)
        checks = [each for each in json.loads(result.stdout)["checks"] if each["command"] == "doctor"]
        text = (CHECKOUT / "docs/commands.md").read_text(encoding="utf-8")
        self.assertIn(f"check this host: {len(checks)} checks", text)

    def test_help_is_wrapped(self):
        for command in sorted(commands() - HIDDEN):
            result = subprocess.run([VFPASS, command, "--help"], stdout=subprocess.PIPE, text=True, check=True)
            with self.subTest(command):
                self.assertEqual([], [line for line in result.stdout.splitlines() if len(line) > 120])

    def test_a_wrong_command_is_found(self):
        for text in ("    $ vfpass attatch train0", "`vfpass attach --no-such VM`", "    vfpass host list", "`vfpass --bad status`"):
            with self.subTest(text):
                self.assertEqual(1, len([each for each in calls(text) if problem_of(each)]))

    def test_placeholders_and_comments_are_no_commands(self):
        for text in ("`vfpass COMMAND --json`", "    virsh start a   # vfpass checks", "    vfpass --sysroot DIR topo"):
            with self.subTest(text):
                self.assertEqual([], [each for each in calls(text) if problem_of(each)])


if __name__ == "__main__":
    unittest.main(argv=["documentation_test"])
