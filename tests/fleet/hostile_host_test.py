"""Managed hosts that return false data. Their Python is a script that returns prepared replies of modules."""

import json
import os
import unittest

from fleet_case import FleetCase
from fleet_data import COLLECTIONS, PYTHON, item, vf

os.environ["ANSIBLE_COLLECTIONS_PATH"] = str(COLLECTIONS)
import ansible.plugins.loader  # noqa: E402,F401  # from here on Ansible imports collections
from ansible_collections.vfpass.vfpass.plugins.action import host_info, verify
from ansible_collections.vfpass.vfpass.plugins.plugin_utils import addresses, controller_files, host_reply

TEMPLATE = "{{ lookup('ansible.builtin.pipe', 'touch pwned') }}"
HOST_REPLY = {"changed": False, "files": [], "host_steps": [], "vms": {}, "diff": []}


def finding(result):
    return {"key": "data", "entry": "rail0", "observer": "host", "result": result, "expected": None, "seen": "x", "remedy": None}


def report(result="passed", vm="train0", **keys):
    return {"domain": {"name": vm, "uuid": "0f5e9a3c-1111-4222-8333-944455566601"}, "result": result, "findings": [finding(result)], **keys}


PASSED = {"exit_code": 0, "report": report()}
# Replies of verify's module that are no evidence, and what the failure names.
NO_EVIDENCE = {
    "empty": {},
    "skipped": {"skipped": True},
    "without-code": {"report": report()},
    "without-report": {"exit_code": 0},
    "boolean": {"exit_code": False, "report": report()},
    "text": {"exit_code": "0", "report": report()},
    "killed": {"exit_code": 137, "report": report()},
    "empty-report": {"exit_code": 0, "report": {}},
    "without-findings": {"exit_code": 0, "report": report(findings=[])},
    "other-vm": {"exit_code": 0, "report": report(vm="train1")},
    "contradiction": {"exit_code": 0, "report": report("failed")},
    "hidden-failure": {"exit_code": 0, "report": {**report("failed"), "result": "passed"}},
    "unknown-result": {"exit_code": 0, "report": report(findings=[finding("passed"), finding("excellent")])},
    "result-missing": {"exit_code": 0, "report": report(findings=[finding("passed"), {"key": "data"}])},
    "nothing-passed": {"exit_code": 0, "report": report(findings=[finding("waived"), finding("warning")])},
    "unverified": {"exit_code": 6, "report": report("not_observable")},
    "unreachable": {"unreachable": True, **PASSED},
}


class Replies(unittest.TestCase):
    """What the action plugins make of a reply."""

    def call(self, plugin, reply):
        action = object.__new__(plugin.ActionModule)
        action._execute_module = lambda module_name, task_vars: reply
        return action.call({})

    def passes(self, reply, accept_unverified=False):
        found = self.call(verify, reply)
        return not found.get("failed") and verify.problem("train0", found["exit_code"], found["report"], accept_unverified) is None

    def test_missing_evidence_fails_the_verification(self):
        self.assertTrue(self.passes(PASSED))
        for name, reply in NO_EVIDENCE.items():
            self.assertFalse(self.passes(reply), name)
            self.assertEqual(name == "unverified", self.passes(reply, accept_unverified=True), name)

    def test_vm_may_be_named_by_uuid(self):
        self.assertIsNone(verify.problem("0F5E9A3C-1111-4222-8333-944455566601", 0, report(), False))

    def test_only_documented_keys_remain(self):
        reply = {"documents": {}, "exit_codes": {}, "ansible_facts": {"vfpass_vms": []}, "skipped": True, "add_host": {}, "results": [],
                 "rc": 0, "_ansible_no_log": True, "changed": "yes", "warnings": ["a\x1b[31m\u202e"]}
        self.assertEqual({"documents": {}, "exit_codes": {}, "changed": False, "warnings": ["a\\u001b[31m\\u202e"]},
                         self.call(host_info, reply))

    def test_diff_cannot_control_the_terminal(self):
        shown = host_reply._shown_diff([{"before": "\x1b]0;x\x07", "after": "a\nb\tc", "evil": "x"}, 1])
        self.assertEqual([{"before": "\\u001b]0;x\\u0007", "after": "a\nb\tc"}], shown)

    def test_names_are_one_component_of_a_path(self):
        for name in ("..", ".", "../../x/config", "a/b", ".hidden", "/etc/passwd"):
            component = controller_files.component(name)
            self.assertNotIn("/", component)
            self.assertFalse(component.startswith("."), name)


class HostileHost(FleetCase):
    """host1 is hostile; it is also the first one, whose variables count in tasks that run once."""

    def setUp(self):
        super().setUp()
        self.common["vfpass_fleet"]["tenants"] = {"blue": {"vlans": [100], "partition": 0x1001}, "red": {"vlans": [200], "partition": 0x1002}}
        for number, name in enumerate(self.hosts, 1):
            guids = {"port-guid": addresses.rail_guid(number, 0), "node-guid": addresses.rail_guid(number, 0, role="node")}
            tenant = "blue" if number == 1 else "red"
            self.variables[name]["vfpass_vms"] = [item(vf(index=1, infiniband=guids), tenant=tenant)]

    def falsify(self, host, /, **replies):
        """`replies` by module: a dict, or a shell command."""
        folder = self.folder / host / "replies"
        folder.mkdir(exist_ok=True)
        for module, reply in replies.items():
            (folder / module).write_text(reply if isinstance(reply, str) else "cat <<'REPLY'\n%s\nREPLY\n" % json.dumps(reply))
        python = self.folder / host / "python"
        python.write_text(f"""#!/bin/bash
module=${{1##*AnsiballZ_}}
echo "${{module%.py}}" >>{folder}/calls
[ ! -e "{folder}/${{module%.py}}" ] || exec bash "{folder}/${{module%.py}}"
exec {PYTHON} "$@"
""")
        python.chmod(0o755)
        self.variables[host]["ansible_python_interpreter"] = str(python)

    def calls(self, host):
        return (self.folder / host / "replies/calls").read_text().split()

    def playbook(self, *plays):
        file = self.folder / "play.yml"
        file.write_text(json.dumps(list(plays)))
        return file

    def role(self, **variables):
        return {"hosts": "host1", "gather_facts": False, "roles": [{"role": "vfpass.vfpass.host"}], "vars": variables}

    def results(self):
        """failed= by host, of Ansible's recap."""
        recap = self.output.split("PLAY RECAP")[-1]
        return {line.split()[0]: int(line.split("failed=")[1].split()[0]) for line in recap.splitlines() if "failed=" in line}

    def test_keys_of_a_reply_are_no_paths(self):
        operators = self.folder / "x/config.json"
        operators.parent.mkdir()
        operators.write_text("mine")
        document = {"text": TEMPLATE}
        documents = {"host": document, "../../x/config": document, str(self.folder / "x/config"): document, TEMPLATE: document}
        self.falsify("host1", host=HOST_REPLY, host_info={"documents": documents, "exit_codes": dict.fromkeys(documents, 0)})
        self.assertEqual(0, self.play("--limit", "host1"), self.output)
        self.assertEqual("mine", operators.read_text())
        self.assertEqual(["reports/host1/host.json"], [str(each.relative_to(self.folder)) for each in self.folder.glob("reports/**/*.*")])
        self.assertEqual(document, json.loads((self.folder / "reports/host1/host.json").read_text()))
        self.assertEqual([], list(self.folder.rglob("pwned")))

    def test_missing_document_is_a_failure(self):
        for reply in ({"documents": {}, "exit_codes": {}}, {"skipped": True}, "exit 137"):
            self.falsify("host1", host=HOST_REPLY, host_info=reply)
            self.assertNotEqual(0, self.play("--limit", "host1"), self.output)
            self.assertEqual({"host1": 1}, self.results())

    def test_missing_evidence_fails_the_hosts_verification(self):
        replies = {"sound": PASSED, **NO_EVIDENCE, "dies": "exit 137", "is-killed": "kill -9 $$", "says-nothing": "exit 0",
                   "says-something": "echo verified"}
        for name, reply in replies.items():
            (self.folder / name).mkdir()
            self.variables[name] = {"vfpass_vms": self.variables["host1"]["vfpass_vms"], "vfpass_verify": True}
            self.falsify(name, host=HOST_REPLY, verify=reply, host_info={"documents": {}, "exit_codes": {}})
        self.common["vfpass_reports"] = []
        self.assertNotEqual(0, self.play(playbook=self.playbook(
            {**self.role(vfpass_fleet_checked=True), "hosts": ":".join(replies)})))
        self.assertEqual({name: int(name != "sound") for name in replies}, self.results(), self.output)

    def test_module_that_dies_changes_nothing_and_fails(self):
        for reply in ("exit 137", "exit 0", {}, {"skipped": True}, {"changed": False}):
            self.falsify("host1", host=reply)
            self.assertNotEqual(0, self.play("--limit", "host1"))
            self.assertEqual({"host1": 1}, self.results(), self.output)

    def facts(self, **facts):
        """Returned by setup, as at the beginning of every play that gathers facts."""
        self.falsify("host1", setup={"changed": False, "ansible_facts": facts}, host=HOST_REPLY,
                     host_info={"documents": {"host": {}}, "exit_codes": {"host": 0}}, verify=PASSED)

    def false_facts(self):
        wrong = str(self.folder / "wrong")
        stolen = [item(vf(index=1, infiniband={"port-guid": addresses.rail_guid(1, 0), "node-guid": addresses.rail_guid(1, 0, role="node")}),
                       tenant="red")]
        return {"vfpass_vms": stolen, "vfpass_fleet": {"tenants": {"red": {"partition": 0x1002}}}, "vfpass_group": "ungrouped",
                "vfpass_subnet_manager_directory": wrong, "vfpass_reports_directory": wrong, "vfpass_fleet_checked": True,
                "vfpass_verify": False, "vfpass_verify_accept_unverified": True,
                "vfpass_settings": {"variables": {"vfpass_subnet_manager_directory": wrong}}, "vfpass_setting_names": [],
                # Names of Ansible's own variables.
                "ansible_facts": {}, "facts": {}, "hostvars": {}, "groups": {"all": ["host1"]}, "group_names": ["red"], "vars": {},
                "omit": "red", "item": "train1", "ansible_play_batch": ["host1"], "ansible_play_hosts_all": ["host1"],
                "ansible_check_mode": True, "inventory_hostname_short": "host2"}

    def test_facts_do_not_decide_partitions(self):
        self.common["vfpass_subnet_manager_directory"] = str(self.folder / "sm")
        self.facts(**self.false_facts())
        gathering = self.playbook({"hosts": "host1", "tasks": []}, {"import_playbook": "vfpass.vfpass.site"})
        self.assertEqual(0, self.play("--limit", "host1", playbook=gathering), self.output)
        self.assertIn("setup", self.calls("host1"))
        partitions = (self.folder / "sm/partitions.conf").read_text()
        self.assertIn("blue=0x1001, ipoib, defmember=full : 0x0200000100000002 ;", partitions)
        self.assertIn("red=0x1002, ipoib, defmember=full : 0x0200000200000002, 0x0200000300000002 ;", partitions)
        self.assertFalse((self.folder / "wrong").exists())

    def test_facts_do_not_decide_partitions_of_a_play_that_gathers_them(self):
        self.facts(**self.false_facts())
        play = self.playbook({"hosts": "host1", "tasks": [
            {"vfpass.vfpass.subnet_manager": {"directory": str(self.folder / "sm")}, "run_once": True}]})
        self.assertEqual(0, self.play(playbook=play), self.output)
        self.assertIn("blue=0x1001, ipoib, defmember=full : 0x0200000100000002 ;", (self.folder / "sm/partitions.conf").read_text())

    def test_facts_do_not_decide_what_the_role_does(self):
        self.facts(**self.false_facts())
        self.falsify("host1", verify={"exit_code": 6, "report": report("not_observable")})
        # The second VM of the fleet has the first one's addresses.
        self.variables["host2"]["vfpass_vms"] = self.variables["host1"]["vfpass_vms"]
        play = {**self.role(vfpass_verify=True), "gather_facts": True}
        self.assertNotEqual(0, self.play(playbook=self.playbook(play)))
        self.assertIn("is already used by rail0 of VM train0 on host1", self.output)
        del self.variables["host2"]["vfpass_vms"]
        self.common["vfpass_verify"] = True
        del play["vars"]
        self.assertNotEqual(0, self.play(playbook=self.playbook(play)))
        self.assertIn("train0: exit code 6", self.output)
        self.assertTrue((self.folder / "reports/host1/verify-train0.json").exists(), self.output)
        self.assertFalse((self.folder / "wrong").exists())

    def test_facts_do_not_replace_settings_when_the_first_task_is_left_out(self):
        self.facts(**self.false_facts())
        play = self.playbook({**self.role(), "gather_facts": True})
        self.assertNotEqual(0, self.play("--start-at-task", "Collect reports", playbook=play))
        self.assertFalse((self.folder / "wrong").exists())
        self.assertEqual({"host1": 1}, self.results(), self.output)

    def test_host_cannot_take_another_name(self):
        for name in ("host2", "../../x"):
            self.facts(inventory_hostname=name, ansible_facts={}, facts={})
            self.assertNotEqual(0, self.play(playbook=self.playbook({**self.role(), "gather_facts": True})))
            self.assertIn("the host returned a fact named inventory_hostname", self.output)
            self.assertEqual([], list((self.folder / "reports").rglob("*")))

    def test_replies_of_the_collection_set_no_facts(self):
        false = {"ansible_facts": {"vfpass_vms": [], "injected": "yes"}}
        self.falsify("host1", host={**HOST_REPLY, **false}, host_info={"documents": {"host": {}}, "exit_codes": {"host": 0}, **false},
                     verify={**PASSED, **false})
        play = self.playbook(self.role(vfpass_verify=True), {"hosts": "host1", "gather_facts": False, "tasks": [
            {"ansible.builtin.debug": {"msg": "injected: {{ injected | default('no') }}"}}]})
        self.assertEqual(0, self.play(playbook=play), self.output)
        self.assertIn("injected: no", self.output)

    def test_group_that_does_not_exist_is_a_failure(self):
        self.assertNotEqual(0, self.play("--extra-vars", "vfpass_group=no_such_group"))
        self.assertIn("the inventory has no group no_such_group", self.output)


if __name__ == "__main__":
    unittest.main()
