"""bench/coverage.md: the commands, options, keys and checks that it names exist."""

import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATES = {"done", "checked", "by hand", "left out", "missing"}
# Words in code marks that are neither keys nor checks: programs and values.
FOREIGN = {"ibping", "mstconfig"}


def rows():
    """(line number, state, text of the last column) for each row of a table of steps."""
    text = (ROOT / "bench/coverage.md").read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[0] != "step" and not set(cells[0]) <= {"-"}:
            yield number, cells[1], cells[2]


def keys_of(schema):
    """Names of all properties in a JSON schema, with their enumerated values."""
    if isinstance(schema, list):
        return set().union(*map(keys_of, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    own = set(schema.get("properties", {})) | {value for value in schema.get("enum", []) if isinstance(value, str)}
    return own.union(*map(keys_of, schema.values()))


def sources(*folders):
    return "".join(file.read_text(encoding="utf-8") for folder in folders for file in sorted((ROOT / folder).rglob("*.[ch]pp")))


class Coverage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keys = set()
        for folder in ("docs/schema", "docs/json"):
            for file in (ROOT / folder).glob("*.json"):
                cls.keys |= keys_of(json.loads(file.read_text(encoding="utf-8")))
        cls.literals = set(re.findall(r'"([a-z][a-z_-]*)"', sources("src")))
        # `data-gpu` and `peer-data-gpu` are put together from a beginning and `host` or `gpu`.
        cls.beginnings = set(re.findall(r'"([a-z-]+-)"', sources("src/guest/verify")))
        cls.options = set(re.findall(r"--[a-z][a-z-]*", sources("src/commands", "src/probe/program")))

    def known(self, word):
        return word in self.keys | self.literals | FOREIGN or re.sub("(gpu-to-host|host-to-gpu|host|gpu)$", "", word) in self.beginnings

    def test_has_rows_and_only_defined_states(self):
        found = list(rows())
        self.assertGreater(len(found), 100)
        for number, state, _ in found:
            self.assertIn(state, STATES, f"line {number}")

    def test_options_exist(self):
        for number, _, text in rows():
            for code in re.findall(r"`([^`]*)`", text):
                for option in re.findall(r"--[a-z][a-z-]*", code):
                    self.assertIn(option, self.options, f"line {number}")

    def test_subcommands_exist(self):
        for number, _, text in rows():
            for _, command in re.findall(r"`(vfpass|vfpass-probe) ([a-z][a-z-]*)", text):
                self.assertIn(command, self.literals, f"line {number}")

    def test_keys_and_checks_exist(self):
        for number, _, text in rows():
            for code in re.findall(r"`([^`]*)`", text):
                words = re.findall(r"([a-z][a-z-]*):", code) + ([code] if re.fullmatch("[a-z][a-z_-]*", code) else [])
                for word in words:
                    self.assertTrue(self.known(word), f"line {number}: {word}")

    def test_files_of_links_exist(self):
        text = (ROOT / "bench/coverage.md").read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)", text):
            self.assertTrue((ROOT / "bench" / target).exists(), target)


if __name__ == "__main__":
    unittest.main(argv=["coverage_test"])
