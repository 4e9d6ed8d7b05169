"""The example of the role's README, as it is printed, in check mode on a captured host."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from fleet_data import COLLECTIONS, PYTHON, CapturedHost

README = COLLECTIONS / "ansible_collections/vfpass/vfpass/roles/host/README.md"


def blocks(text):
    """The indented blocks."""
    found = re.findall(r"(?m)(?:^ {4}.*\n|^\n(?= {4}))+", text)
    return [re.sub(r"(?m)^ {4}", "", block).strip("\n") + "\n" for block in found]


class Readme(unittest.TestCase):
    def test_example_runs_in_check_mode(self):
        playbook, variables, command = blocks(README.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "machine").mkdir()
            host = CapturedHost(folder / "machine")
            (folder / "playbook.yml").write_text(playbook)
            (folder / "host_vars").mkdir()
            (folder / "host_vars/host17.yml").write_text(variables)
            machine = {f"vfpass_{key}": value for key, value in host.options().items()}
            connection = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON}
            (folder / "inventory").write_text(json.dumps({"all": {"vars": {**machine, **connection}, "hosts": {"host17": {}}}}))
            environment = {**os.environ, **host.environment(), "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_HOME": name,
                           "ANSIBLE_LOCAL_TEMP": name, "ANSIBLE_REMOTE_TEMP": name, "ANSIBLE_NOCOLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
            words = command.split()
            self.assertEqual(["ansible-playbook", "--check"], [words[0], words[-2]])
            # The captured host is readable by everybody.
            run = subprocess.run(words + ["--extra-vars", "ansible_become=false"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, env=environment, cwd=folder, check=False)
            self.assertEqual(0, run.returncode, run.stdout)
            self.assertIn("lease VF", run.stdout)
            self.assertIn("mac 02:00:00:11:00:00, vlan 100", run.stdout)
            self.assertEqual([[], []], [host.files(), host.changing_calls()])


if __name__ == "__main__":
    unittest.main()
