"""The documentation as a reader finds it: index, links and anchors, README's length, and messages that are quoted."""

import re
import unittest
from pathlib import Path

from loaded import CHECKOUT

DOCS = CHECKOUT / "docs"
README, INDEX = CHECKOUT / "README.md", DOCS / "README.md"
PAGES = [README, CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "lab/README.md", CHECKOUT / "bench/README.md", CHECKOUT / "bench/coverage.md", *sorted(DOCS.rglob("*.md"))]
CODE = re.compile(r"^(?: {4,}|\t)[^\n]*$|^```.*?^```|`(?:[^`\n]|\n(?!\n))*`|<!--.*?-->", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# The user's shell opens the file, not sudo's command. `sudo sh -c '... > FILE'` would work.
UNPRIVILEGED_WRITE = re.compile(r"\bsudo (?!(?:ba)?sh )[^|;&\n]*(?<![0-9&])>{1,2} *(?!/dev/)[/~$\w]")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'


def read(file):
    return file.read_text(encoding="utf-8")


def links(file):
    """The targets of relative links."""
    found = LINK.findall(CODE.sub("", read(file)))
    return [each for each in found if not re.match(r"[a-z]+:", each)]


def anchors(file):
    """GitHub's anchors of the headings."""
    without_blocks = re.sub(r"^```.*?^```", "", read(file), flags=re.DOTALL | re.MULTILINE)
    names = re.findall(r"^#+ +(.*?) *$", without_blocks, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in names}


def problem_of(file, link):
    path, _, anchor = link.partition("#")
    target = (file.parent / path).resolve() if path else file
    if not target.exists():
        return f"{link}: does not exist"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{link}: no such heading"
    return None


def reachable_from(start):
    found, new = set(), [start]
    while new:
        file = new.pop()
        if file not in found:
            found.add(file)
            targets = ((file.parent / each.partition("#")[0]).resolve() for each in links(file))
            new += [each for each in targets if each.suffix == ".md" and each.is_file()]
    return found


def literals():
    """The string literals of all sources, with adjacent ones joined."""
    texts = []
    for file in [*(CHECKOUT / "src").rglob("*.cpp"), *(CHECKOUT / "src").rglob("*.hpp")]:
        for group in re.finditer(rf"{LITERAL}(?:\s*{LITERAL})*", read(file)):
            texts.append("".join(each[1:-1] for each in re.findall(LITERAL, group[0])))
    return "\n".join(texts)


class Documentation(unittest.TestCase):
    def test_readme_is_short(self):
        self.assertLess(len(read(README).splitlines()), 250)

    def test_index_has_a_line_for_every_page(self):
        named = re.findall(r"^- \[[^\]]+\]\(([^)#/]+\.md)\): \S", read(INDEX), re.MULTILINE)
        pages = {each.name for each in DOCS.glob("*.md")} - {"README.md"}
        self.assertEqual(pages, set(named))
        self.assertEqual(len(named), len(set(named)), "a page has two lines")

    def test_every_page_is_reachable_from_readme(self):
        self.assertEqual(set(), set(DOCS.rglob("*.md")) - reachable_from(README))

    def test_every_relative_link_has_a_target(self):
        for file in PAGES:
            with self.subTest(str(file.relative_to(CHECKOUT))):
                problems = [problem_of(file, each) for each in links(file)]
                self.assertEqual([], [each for each in problems if each])

    def test_a_wrong_link_is_found(self):
        for link in ("missing.md", "docs/doctor.md#no-such-heading", "#nowhere"):
            self.assertIsNotNone(problem_of(README, link), link)
        self.assertIsNone(problem_of(README, "docs/doctor.md#checks"))

    def test_no_command_redirects_the_output_of_sudo(self):
        for file in PAGES:
            with self.subTest(str(file.relative_to(CHECKOUT))):
                self.assertEqual([], [found[0] for code in CODE.finditer(read(file)) for found in UNPRIVILEGED_WRITE.finditer(code[0])])

    def test_redirected_sudo_is_found(self):
        for command in ("sudo vfpass init train0 > /etc/vfpass/vms/train0.yaml", "sudo vfpass init train0 >train0.yaml", "sudo echo 1 >> ~/x"):
            self.assertRegex(command, UNPRIVILEGED_WRITE)
        for command in ("sudo vfpass init train0 | sudo tee /etc/x >/dev/null", "sudo vfpass status 2>/dev/null", "sudo sh -c 'echo 1 > /sys/x'"):
            self.assertNotRegex(command, UNPRIVILEGED_WRITE)

    def test_quoted_messages_are_those_of_the_program(self):
        text = CODE.sub("", read(DOCS / "troubleshooting.md"))
        quoted = re.findall(r'"([^"\n]+)"', text)
        self.assertGreater(len(quoted), 10)
        known = literals()
        self.assertEqual([], [each for each in quoted if each not in known])


if __name__ == "__main__":
    unittest.main(argv=["documentation_test"])
