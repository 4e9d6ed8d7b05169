"""Formats of this version against those of every released version (the directories beside this file).

docs/compatibility.md has the promise. What the files of a mapping mean is compared by
tests/unit/config/compatibility_test.cpp."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

from compatible import missing_values, no_longer_accepted, no_longer_promised

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
VERSIONS = sorted(each.parent for each in HERE.glob("*/schemas"))
INPUTS = ("mapping.schema.json", "host.schema.json")
# The keywords that compatible.py compares, and those that do not restrict values.
KEYWORDS = {"type", "properties", "required", "additionalProperties", "patternProperties", "enum", "const", "items", "anyOf", "oneOf",
            "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
            "minProperties", "maxProperties", "$ref"}
HARMLESS = {"$schema", "$id", "title", "description", "definitions", "default", "uniqueItems", "dependencies"}


def load(file):
    return json.loads(file.read_text())


def current_schema(name):
    return CHECKOUT / "docs" / ("schema" if name in INPUTS else "json") / name


def schemas_in(value):
    """Every schema in a schema, by its place."""
    yield value
    for key in ("properties", "patternProperties", "definitions"):
        for below in value.get(key, {}).values():
            yield from schemas_in(below)
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), dict):
            yield from schemas_in(value[key])
    for key in ("anyOf", "oneOf"):
        for below in value.get(key, []):
            yield from schemas_in(below)


def keys_of_schema(whole, schema, place=""):
    while "$ref" in schema:
        schema = whole["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    for key, below in schema.get("properties", {}).items():
        yield f"{place}/{key}"
        yield from keys_of_schema(whole, below, f"{place}/{key}")
    if isinstance(schema.get("items"), dict):
        yield from keys_of_schema(whole, schema["items"], place)


def keys_of_file(value, place=""):
    if isinstance(value, dict):
        for key, below in value.items():
            yield f"{place}/{key}"
            yield from keys_of_file(below, f"{place}/{key}")
    if isinstance(value, list):
        for below in value:
            yield from keys_of_file(below, place)


class Formats(unittest.TestCase):
    def test_a_version_is_recorded(self):
        self.assertTrue(VERSIONS)

    def each_schema(self):
        for version in VERSIONS:
            for file in sorted((version / "schemas").glob("*.json")):
                with self.subTest(version=version.name, format=file.name):
                    self.assertTrue(current_schema(file.name).is_file(), "the format was removed")
                    yield file, load(file), load(current_schema(file.name))

    def test_files_of_earlier_versions_are_accepted(self):
        for file, earlier, now in self.each_schema():
            if file.name in INPUTS:
                self.assertEqual([], no_longer_accepted(earlier, now))

    def test_documents_keep_what_earlier_versions_promised(self):
        for file, earlier, now in self.each_schema():
            if file.name not in INPUTS:
                self.assertEqual([], no_longer_promised(earlier, now))

    def test_documents_have_the_values_of_earlier_versions(self):
        """The documents are those that the unit tests of src/report expect."""
        for version in VERSIONS:
            documents = sorted((version / "documents").glob("*.json"))
            self.assertTrue(documents)
            for file in documents:
                with self.subTest(version=version.name, document=file.name):
                    now = CHECKOUT / "tests/unit/report/golden" / file.name
                    self.assertEqual([], missing_values(load(file), load(now)))

    def test_comparison_knows_every_keyword(self):
        for file in sorted(CHECKOUT.glob("docs/schema/*.json")) + sorted(CHECKOUT.glob("docs/json/*.json")):
            for schema in schemas_in(load(file)):
                self.assertEqual(set(), set(schema) - KEYWORDS - HARMLESS, file.name)

    def test_current_files_have_every_key(self):
        for name, files in (("mapping", sorted((HERE / "current/vms").glob("*.yaml"))), ("host", [HERE / "current/host.yaml"])):
            schema = load(CHECKOUT / f"docs/schema/{name}.schema.json")
            known = {key for key in keys_of_schema(schema, schema) if "/nccl/environment/" not in key}
            used = set().union(*(keys_of_file(yaml.safe_load(file.read_text())) for file in files))
            self.assertEqual(set(), known - used)


class Program(unittest.TestCase):
    def test_check_accepts_files_of_earlier_versions(self):
        for version in VERSIONS:
            files = sorted((version / "configuration").rglob("*.yaml"))
            self.assertTrue(files)
            for file in files:
                with self.subTest(version=version.name, file=file.name), tempfile.TemporaryDirectory() as directory:
                    copy = Path(directory, file.name)
                    copy.write_text(file.read_text())
                    copy.chmod(0o644)
                    done = subprocess.run([os.environ["VFPASS"], "check", copy], capture_output=True, text=True, timeout=60)
                    self.assertEqual((0, ""), (done.returncode, done.stderr))


if __name__ == "__main__":
    unittest.main()
