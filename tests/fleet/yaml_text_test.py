"""The YAML that the collection writes: vfpass and PyYAML read the same values."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

from fleet_data import CHECKOUT, VFPASS
from ansible_collections.vfpass.vfpass.plugins.module_utils import configuration, yaml_text


class YamlText(unittest.TestCase):
    def test_values_survive(self):
        value = {"text": ["no", "Yes", "0x10", "010", "1:20", "a b", "#", "", "-", "ü\n\"", "02:00:00:00:00:01", "null", "~", "1e3"],
                 "numbers": [0, -1, 1.5], "truth": [True, False, None],
                 "nested": [{"a": {"b": [{"c": 1}, [[2]]]}, "d": {}}, [], {}, [{"e": []}]]}
        self.assertEqual(value, yaml.safe_load(yaml_text.document(value)))

    def test_every_example_is_valid_after_a_round_trip(self):
        examples = [path for path in sorted((CHECKOUT / "examples").glob("*.yaml")) if not path.name.startswith("host")]
        self.assertGreater(len(examples), 5)
        with tempfile.TemporaryDirectory() as folder:
            for example in examples:
                value = yaml.safe_load(example.read_text())
                file = Path(folder) / example.name
                file.write_text(configuration.wanted_files(None, [value]).popitem()[1])
                checked = subprocess.run([VFPASS, "check", file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.assertEqual((example.name, 0), (example.name, checked.returncode), checked.stdout)


class FileNames(unittest.TestCase):
    def test_names_stay_in_the_directory_and_visible(self):
        self.assertEqual("train0.yaml", configuration.file_name("train0"))
        for name in ("..", ".hidden", "a\nb", "ü"):
            file = configuration.file_name(name)
            self.assertRegex(file, r"^[^./][^/\n]*\.yaml$")

    def test_different_vms_have_different_files(self):
        names = [".a", "%2Ea", "a b", "a%20b"]
        self.assertEqual(len(names), len({configuration.file_name(name) for name in names}))


if __name__ == "__main__":
    unittest.main()
