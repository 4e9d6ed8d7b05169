"""The mapping that vfpass init proposes, in host_vars."""

import unittest

from fleet_case import FleetCase
from fleet_data import CONNECTX6

from ansible.errors import AnsibleActionFail
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.proposal import read_proposal, variables_file


class Playbook(FleetCase):
    def setUp(self):
        super().setUp()
        self.common["vfpass_proposal"] = {"vm": "train0", "gpus": 0, "vfs": 1}
        self.file = self.folder / "host_vars/host1.yml"

    def propose(self, *options):
        return self.play("--limit", "host1", *options, playbook="vfpass.vfpass.propose")

    def test_check_then_write_then_nothing(self):
        self.assertEqual(0, self.propose("--check", "--diff"), self.output)
        self.assertIn("+vfpass_vms:", self.output)
        self.assertFalse(self.file.exists())
        self.assertEqual(0, self.propose(), self.output)
        self.assertIn("mlx5_0 (ens1f0np0)", self.file.read_text())
        self.assertEqual(0, self.propose(), self.output)
        self.assertEqual({"host1": 0}, self.summary())
        self.assertEqual({}, self.changing_calls())
        # It is what the role deploys.
        for name in ("vfpass_vms", "vfpass_host_policy"):
            del self.variables["host1"][name]
        self.assertEqual(0, self.play("--limit", "host1", "--check", playbook=self.role()), self.output)
        self.assertIn("vms/train0.yaml", self.output)

    def role(self):
        file = self.folder / "role.yml"
        file.write_text("- hosts: all\n  gather_facts: false\n  tasks:\n    - vfpass.vfpass.settings: {names: [vfpass_vms]}\n"
                        "    - import_role: {name: vfpass.vfpass.host}\n      vars: {vfpass_fleet_checked: true}\n      diff: true\n")
        return file

    def test_a_file_with_another_content_stays(self):
        self.file.parent.mkdir()
        self.file.write_text("mine: 1\n")
        self.assertNotEqual(0, self.propose())
        self.assertIn("exists with another content", self.output)
        self.assertEqual("mine: 1\n", self.file.read_text())

    def test_a_directory_of_the_host_gets_the_file(self):
        self.file.with_suffix("").mkdir(parents=True)
        self.assertEqual(0, self.propose(), self.output)
        self.assertTrue((self.folder / "host_vars/host1/vfpass.yml").exists())

    def test_the_reason_of_a_refusal(self):
        self.common["vfpass_proposal"] = {"vm": "train0", "gpus": 3}
        self.assertNotEqual(0, self.propose())
        self.assertIn("GPU", self.output)
        self.assertFalse(self.file.exists())

    def test_a_hostile_proposal_is_not_written(self):
        template = "{{ lookup('pipe', 'touch %s') }}" % (self.folder / "owned")
        (self.hosts["host1"].folder / "recorder/init").write_text(f"cat <<'END'\nversion: 1\nvm: train0\nvfs: [{{name: \"{template}\"}}]\nEND\n")
        self.assertNotEqual(0, self.propose())
        self.assertIn("has a template", self.output)
        self.assertFalse(self.file.exists() or (self.folder / "owned").exists())


class Text(unittest.TestCase):
    def test_refused(self):
        for text, reason in (("vm: train0\nvfs: ['{% raw %}']", "has a template"), ("vm: train1", "is no mapping of VM train0"),
                             ("vm: train0\nansible_connection: local", "is no mapping"), ("[", "is no YAML"), ("vm: train0\nvfs: [!!python/name:os.system ]", "is no YAML"),
                             ("vm: train0\nvfs: &a [1]\ngpus: *a", "has anchors"), ('vm: train0\nvfs: ["\\e[2J"]', "has control characters"),
                             ("vm: train0\nvfs: [[[[[[[1]]]]]]]", "is nested too deeply"), ("vm: train0\nvfs: [2026-01-01]", "has a value"),
                             ("# " + "x" * (300 << 10), "is larger")):
            with self.assertRaisesRegex(AnsibleActionFail, reason, msg=text[:100]):
                read_proposal(text, "train0")

    def test_accepted(self):
        text = "version: 1\nvm: train0\nvfs:\n  - {name: rail0, pf: {pci: \"0000:3b:00.0\"}}\n"
        self.assertEqual("rail0", read_proposal(text, "train0")["vfs"][0]["name"])

    def test_name_of_the_host_does_not_leave_the_directory(self):
        self.assertEqual("/vars/%2E.%2Fx.yml", variables_file("/vars", "../x"))


if __name__ == "__main__":
    unittest.main()
