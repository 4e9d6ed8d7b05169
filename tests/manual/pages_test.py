#!/usr/bin/env python3
"""pages_test.py VFPASS DIRECTORY: commands, options, mappings and links in the pages of DIRECTORY are valid."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

VFPASS, PAGES = sys.argv[1], Path(sys.argv[2])
SECTIONS = ["NAME", "DESCRIPTION", "SEE ALSO"]


def help_of(command):
    result = subprocess.run([VFPASS, *command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return result.stdout if result.returncode == 0 else None


def commands_in(text):
    return re.findall(r"^    vfpass ([a-z][^\n]*)$", text, re.MULTILINE)


def problems_of(line):
    """What the program does not know of `COMMAND [NESTED] [WORD...]`."""
    words = line.split(">")[0].split("#")[0].split()
    command, usage = words[:1], help_of(words[:1])
    if usage is None or f"vfpass {words[0]} " not in usage:
        return [f"unknown command {words[0]}"]
    if "\nSubcommands:" in usage:
        command = words[:2]
        usage = help_of(command)
        if usage is None or f"vfpass {' '.join(command)} " not in usage:
            return [f"unknown command {' '.join(command)}"]
    known = set(re.findall(r"--[a-z-]+", usage + help_of([])))
    return [f"{line}: unknown option {word}" for word in words if word.startswith("--") and word.split("=")[0] not in known]


def is_valid_mapping(text):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "page.yaml"
        file.write_text(text)
        return subprocess.run([VFPASS, "check", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class PagesTest(unittest.TestCase):
    def setUp(self):
        self.pages = {page: page.read_text() for page in sorted(PAGES.glob("*.md"))}
        self.assertTrue(self.pages)

    def test_finds_invalid_command_option_and_mapping(self):
        self.assertEqual(problems_of("attach train0 --dry-run"), [])
        self.assertEqual(problems_of("host apply --only pfs"), [])
        self.assertTrue(problems_of("atach train0"))
        self.assertTrue(problems_of("host aply"))
        self.assertTrue(problems_of("attach train0 --dryrun"))
        self.assertFalse(is_valid_mapping("version: 1\nvm: train0\nvfz: []\n"))

    def test_commands_and_options_exist(self):
        for page, text in self.pages.items():
            self.assertEqual([problem for line in commands_in(text) for problem in problems_of(line)], [], page.name)
        self.assertGreater(sum(len(commands_in(text)) for text in self.pages.values()), 10)

    def test_mappings_are_valid(self):
        mappings = [(page, text) for page, whole in self.pages.items() for text in re.findall(r"```yaml\n(.*?)```", whole, re.S)]
        self.assertTrue(mappings)
        for page, text in mappings:
            self.assertTrue(is_valid_mapping(text), f"{page.name}:\n{text}")

    def test_pages_have_title_sections_and_existing_links(self):
        for page, text in self.pages.items():
            name, section = page.name.split(".")[:2]
            self.assertTrue(text.startswith(f"# {name}({section})\n\n## NAME\n\n{name} - "), page.name)
            self.assertEqual([title for title in SECTIONS if f"\n## {title}\n" not in text], [], page.name)
            self.assertEqual([link for link in re.findall(r"\]\(([^)#]+)\)", text) if not (PAGES / link).exists()], [], page.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
