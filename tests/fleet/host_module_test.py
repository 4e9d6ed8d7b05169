"""The modules host, host_info and verify on a captured host, with the built vfpass for all that it only reads."""

import json
import os
import stat
import subprocess
import tempfile
import unittest

from fleet_data import COLLECTIONS, POLICY, PYTHON, CapturedHost, item, vf

MODULES = COLLECTIONS / "ansible_collections/vfpass/vfpass/plugins/modules"
MAPPING = item(vf(index=1, mac="02:00:00:00:00:01", vlan={"id": 100}))["mapping"]


class Modules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.host = CapturedHost(folder.name)

    def run_module(self, name, check=False, **arguments):
        document = {"ANSIBLE_MODULE_ARGS": {**self.host.options(), **arguments, "_ansible_check_mode": check, "_ansible_diff": True,
                                            "_ansible_remote_tmp": str(self.host.folder), "_ansible_keep_remote_files": False}}
        run = subprocess.run([PYTHON, "-B", MODULES / f"{name}.py"], input=json.dumps(document), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env={**os.environ, **self.host.environment(), "PYTHONPATH": COLLECTIONS})
        self.assertTrue(run.stdout, run.stderr)
        return json.loads(run.stdout)

    def deploy(self, check=False, policy=POLICY, mappings=(MAPPING,), **arguments):
        return self.run_module("host", check, policy=policy, mappings=list(mappings), **arguments)


class HostModule(Modules):
    def test_check_mode_shows_files_steps_and_xml_and_changes_nothing(self):
        result = self.deploy(check=True)
        self.assertTrue(result["changed"], result)
        self.assertEqual(["host.yaml", "vms/train0.yaml"], result["files"])
        self.assertEqual(["set the MTU of PF 0000:3b:00.0 to 9000"], [step["action"] for step in result["host_steps"]])
        self.assertIn("lease VF 1 of PF 0000:3b:00.0 as rail0 (reserved)", [step["action"] for step in result["vms"]["train0"]["steps"]])
        shown = "\n".join(each.get("prepared", each.get("after", "")) for each in result["diff"])
        for text in ("because host.yaml sets it", "mac 02:00:00:00:00:01, vlan 100", "+    <hostdev mode='subsystem'", 'mac: "02:00:00:00:00:01"'):
            self.assertIn(text, shown)
        self.assertEqual([], self.host.changing_calls())
        self.assertEqual([], self.host.files())
        self.assertEqual(["config", "node.xml", "recorder"], sorted(path.name for path in self.host.folder.iterdir()))

    def test_check_mode_predicts_the_run_and_a_second_run_changes_nothing(self):
        predicted = self.deploy(check=True)
        self.assertEqual([], self.host.changing_calls())
        done = self.deploy()
        for key in ("changed", "files", "host_steps", "vms", "diff"):
            self.assertEqual(predicted[key], done[key])
        self.assertEqual(["host apply --json", "attach --json -- train0"], self.host.changing_calls())
        self.assertEqual(["host.yaml", "vms/train0.yaml"], self.host.files())
        self.assertEqual(0o644, stat.S_IMODE((self.host.config / "host.yaml").stat().st_mode))
        for check in (True, False):
            again = self.deploy(check=check)
            self.assertEqual((False, [], []), (again["changed"], again["files"], again["diff"]))
            self.assertEqual([], self.host.changing_calls())

    def test_plans_with_the_hosts_seal_key(self):
        # Without the key vfpass takes none of its own metadata for genuine, and would attach again at every run.
        key = self.host.config / "seal.key"
        key.write_text("17" * 32)
        key.chmod(0o600)
        for arguments in ({}, {}, {"policy": {**POLICY, "pfs": []}}):
            self.deploy(**arguments)
            keys = self.host.folder / "recorder/keys"
            self.assertEqual(["600 " + "17" * 32], keys.read_text().splitlines())
            keys.unlink()
            self.assertEqual([key], [path for path in self.host.folder.rglob("seal.key")])

    def test_mistake_in_one_file_changes_nothing(self):
        bad = item(vf(vlan={"id": 4095}, spoof=1), vm="train1")["mapping"]
        result = self.deploy(mappings=[MAPPING, bad], policy={"version": 1, "pfs": [{"pf": {"pci": "x"}}]})
        self.assertTrue(result["failed"])
        for text in ("expected a VLAN id", "unknown key `spoof`", "expected a PCI address", str(self.host.config)):
            self.assertIn(text, result["msg"])
        self.assertEqual([[], []], [self.host.files(), self.host.changing_calls()])

    def test_refused_plan_changes_nothing(self):
        refused = item(vf(index=0))["mapping"]
        refused["vfs"][0]["pf"] = {"pci": "0000:99:00.0"}
        result = self.deploy(policy=None, mappings=[refused])
        self.assertIn("0000:99:00.0", result["msg"])
        self.assertEqual([[], []], [self.host.files(), self.host.changing_calls()])

    def test_unknown_vm_changes_nothing(self):
        result = self.deploy(mappings=[{**MAPPING, "vm": "nobody"}])
        self.assertTrue(result["failed"])
        self.assertIn("nobody", result["msg"])
        self.assertEqual([[], []], [self.host.files(), self.host.changing_calls()])

    def test_host_apply_that_would_fail_changes_nothing(self):
        result = self.deploy(policy={"version": 1, "pfs": [{"pf": {"netdev": "ens1f0np0"}, "virtual-function-count": 1}]})
        self.assertIn("VF 0 (0000:3b:00.2) is bound to vfio-pci", result["msg"])
        self.assertEqual([[], []], [self.host.files(), self.host.changing_calls()])

    def test_failure_of_host_apply_has_one_reason(self):
        result = self.deploy(policy={"version": 1, "pfs": [{"pf": {"pci": "0000:99:00.0"}, "mtu": 9000}]})
        self.assertRegex(result["msg"], r"^vfpass host apply would fail, nothing was changed:\n[^\n]*0000:99:00.0[^\n]*$")
        # During the run.
        (self.host.folder / "recorder/host").write_text(
            """case "$*" in *--dry-run* | *show*) exec "$VFPASS" "$@" ;; esac
               echo "vfpass: warning: something else" >&2
               echo '{"pfs": [{"failures": ["PF x: the driver refused it"], "steps": []}], "soft_roce": []}'
               exit 1""")
        result = self.deploy()
        self.assertEqual("PF x: the driver refused it", result["msg"])

    def test_check_mode_shows_a_change_of_the_memory_check(self):
        (self.host.folder / "recorder/host").write_text(
            """echo '{"pfs": [], "soft_roce": [], "gpu_memory_check": {"wanted": true, "found": false, "differs": true}}'; exit 3""")
        result = self.deploy(check=True, attach=False)
        self.assertTrue(result["changed"], result)
        self.assertIn("gpu-memory-check: true", json.dumps([each for each in result["diff"] if "prepared" in each]))

    def test_failure_of_attach_has_one_reason(self):
        (self.host.folder / "recorder/attach").write_text(
            """echo "vfpass: warning: something else" >&2; echo '{"error": {"message": "VF 1 is busy", "remedy": "stop it", "code": 5}}'; exit 5""")
        result = self.deploy()
        self.assertEqual("VF 1 is busy; stop it", result["msg"])

    def test_run_that_failed_continues_at_the_next_run(self):
        (self.host.folder / "recorder/fail").write_text("attach --json -- train0")
        result = self.deploy()
        self.assertEqual((True, True), (result["failed"], result["changed"]))
        self.assertIn("refused for this test", result["msg"])
        (self.host.folder / "recorder/fail").unlink()
        self.host.changing_calls()
        self.assertTrue(self.deploy()["changed"])
        self.assertEqual(["attach --json -- train0"], self.host.changing_calls())

    def test_purge_detaches_before_it_removes_the_mapping(self):
        self.deploy()
        self.host.changing_calls()
        kept = self.deploy(mappings=[])
        self.assertFalse(kept["changed"])
        predicted = self.deploy(check=True, mappings=[], purge=True)
        self.assertEqual(["host.yaml", "vms/train0.yaml"], self.host.files())
        self.assertEqual([], self.host.changing_calls())
        done = self.deploy(mappings=[], purge=True)
        self.assertEqual((predicted["files"], predicted["vms"]), (done["files"], done["vms"]))
        self.assertEqual(["detach --json -- train0"], self.host.changing_calls())
        self.assertEqual(["host.yaml"], self.host.files())

    def test_mapping_in_a_file_of_another_name_is_a_mistake(self):
        (self.host.config / "vms/mine.yaml").write_text(json.dumps(MAPPING))
        result = self.deploy()
        self.assertIn("mine.yaml", result.get("msg", ""))
        self.assertEqual([["vms/mine.yaml"], []], [self.host.files(), self.host.changing_calls()])

    def test_setting_without_steps_is_applied(self):
        result = self.deploy(policy={"version": 1, "gpu-memory-check": True}, attach=False)
        self.assertEqual((True, []), (result["changed"], result["host_steps"]), result)
        self.assertEqual(["host apply --json"], self.host.changing_calls())

    def test_files_alone(self):
        result = self.deploy(apply=False, attach=False)
        self.assertEqual((True, [], {}), (result["changed"], result["host_steps"], result["vms"]))
        self.assertEqual([], self.host.changing_calls())
        self.assertEqual(["host.yaml", "vms/train0.yaml"], self.host.files())

    def test_scope_reaches_plan_and_attach(self):
        self.deploy(policy=None, scope="config")
        self.assertIn("plan --config --json -- train0", self.host.calls())
        self.assertEqual(["attach --config --json -- train0"], self.host.changing_calls())


class OtherModules(Modules):
    def test_host_info_reads_documents(self):
        result = self.run_module("host_info", gather=["host", "doctor", "topo"])
        self.assertEqual({"host": 0, "doctor": 1, "topo": 0}, result["exit_codes"], result)
        self.assertEqual("failed", result["documents"]["doctor"]["result"])
        self.assertEqual([], self.host.changing_calls())

    def test_verify_is_skipped_in_check_mode(self):
        self.assertTrue(self.run_module("verify", check=True, vm="train0")["skipped"])
        self.assertEqual([], self.host.calls())

    def test_verify_returns_exit_code_and_report(self):
        result = self.run_module("verify", vm="train0", minimum_bandwidth="90%")
        self.assertEqual((4, "failed"), (result["exit_code"], result["report"]["result"]))
        self.assertEqual(["verify --json --minimum-bandwidth 90% -- train0"], self.host.calls())

    def test_role_verifies_with_the_limits_of_the_mapping(self):
        tasks = (MODULES.parents[1] / "roles/host/tasks/main.yml").read_text()
        verify = tasks.split("vfpass.vfpass.verify:")[1].split("loop:")[0]
        for limit in ("minimum_bandwidth", "timeout", "peer"):  # docs/fleet.md
            self.assertNotIn(limit, verify)
        self.run_module("verify", vm="train0")
        self.assertEqual(["verify --json -- train0"], self.host.calls())

    def test_program_that_dies_or_writes_no_document_is_a_failure(self):
        for script in ("exit 137", "exit 0", "echo text", "echo '[]'", "kill -9 $$", "echo '{\"result\": \"pas'"):
            (self.host.folder / "recorder/verify").write_text(script)
            result = self.run_module("verify", vm="train0")
            self.assertTrue(result.get("failed"), (script, result))
            self.assertIn("no report", result["msg"])

    def test_document_of_a_program_that_was_killed_does_not_count(self):
        for script in ("echo '{}'; kill -9 $$", "echo '{}'; exit 137"):
            (self.host.folder / "recorder/status").write_text(script)
            self.assertTrue(self.run_module("host_info", gather=["status"]).get("failed"), script)
            (self.host.folder / "recorder/check").write_text(script)
            result = self.deploy()
            self.assertTrue(result.get("failed"), (script, result))
            self.assertEqual([[], []], [self.host.files(), self.host.changing_calls()])

    def test_plan_that_was_killed_is_not_taken_for_one_that_is_still_unknown(self):
        (self.host.folder / "recorder/plan").write_text("kill -9 $$")
        result = self.deploy()
        self.assertTrue(result.get("failed"), result)
        self.assertEqual([[], []], [self.host.files(), self.host.changing_calls()])


if __name__ == "__main__":
    unittest.main()
