"""The role and the playbook with three hosts at once."""

import json
import unittest

from fleet_case import HOSTS, FleetCase
from fleet_data import item, vf
from ansible_collections.vfpass.vfpass.plugins.plugin_utils import addresses


class Playbook(FleetCase):
    def test_check_then_run_then_nothing(self):
        self.assertEqual(0, self.play("--check", "--diff"), self.output)
        self.assertEqual([{}, {}], [self.changing_calls(), self.files()])
        for text in ("lease VF 1 of PF 0000:3b:00.0 as rail0", "mac 02:00:00:02:00:00, vlan 100", "because host.yaml sets it",
                     '+    mac: "02:00:00:03:00:00"', "+    <hostdev mode='subsystem'"):
            self.assertIn(text, self.output)
        self.assertEqual(dict.fromkeys(HOSTS, 1), self.summary())

        self.assertEqual(0, self.play(), self.output)
        self.assertEqual({name: ["host apply --json", "attach --json -- train0"] for name in HOSTS}, self.changing_calls())
        self.assertEqual({name: ["host.yaml", "vms/train0.yaml"] for name in HOSTS}, self.files())
        for number, name in enumerate(HOSTS, 1):
            self.assertIn(addresses.rail_mac(number, 0), (self.hosts[name].config / "vms/train0.yaml").read_text())
            report = json.loads((self.folder / "reports" / name / "host.json").read_text())
            self.assertEqual("9000", report["pfs"][0]["settings"][2]["wanted"])

        for options in ((), ("--check", "--diff")):
            self.assertEqual(0, self.play(*options), self.output)
            self.assertEqual([dict.fromkeys(HOSTS, 0), {}], [self.summary(), self.changing_calls()])

    def test_mistake_of_another_host_stops_a_limited_run(self):
        for name in ("host2", "host3"):
            self.variables[name]["vfpass_vms"][0]["mapping"]["vfs"][0]["mac"] = addresses.rail_mac(1, 0)
        self.variables["host3"]["vfpass_vms"][0]["mapping"]["vfs"][0]["vlan"] = {"id": 200}
        for playbook in ("vfpass.vfpass.site", self.role_alone()):
            self.assertNotEqual(0, self.play("--limit", "host1", playbook=playbook))
            self.assertIn("3 mistakes:", self.output)
            for text in ("host2, VM train0: vfpass_vms[0].mapping.vfs[0].mac: MAC 02:00:00:01:00:00 is already used by rail0 of VM train0 on host1",
                         "host3, VM train0: vfpass_vms[0].mapping.vfs[0].mac", "VLAN 200 is not one of tenant blue",
                         "remedy: choose another address"):
                self.assertIn(text, self.output)
            self.assertEqual([{}, {}], [self.changing_calls(), self.files()])

    def role_alone(self):
        file = self.folder / "role.yml"
        file.write_text("- hosts: all\n  gather_facts: false\n  roles: [vfpass.vfpass.host]\n")
        return file

    def test_limit_and_serial_change_only_their_hosts(self):
        self.assertEqual(0, self.play("--limit", "host2"), self.output)
        self.assertEqual(["host2"], list(self.files()))
        # The second batch fails, so the third never begins.
        (self.hosts["host2"].folder / "recorder/fail").write_text("host apply --dry-run --json")
        self.changing_calls()
        self.assertNotEqual(0, self.play("--extra-vars", "vfpass_serial=1"))
        self.assertEqual(["host1"], list(self.changing_calls()))
        self.assertNotIn("host3", self.files())

    def test_refused_plan_of_one_host_leaves_that_host_unchanged(self):
        self.variables["host2"]["vfpass_vms"][0]["mapping"]["vfs"][0]["pf"] = {"pci": "0000:99:00.0"}
        self.assertNotEqual(0, self.play("--extra-vars", "vfpass_serial=3"))
        self.assertEqual(["host1", "host3"], list(self.files()))
        self.assertIn("0000:99:00.0", self.output)

    def test_first_failure_stops_the_rollout(self):
        for failing, changed in (("host1", []), ("host2", ["host1"])):
            with self.subTest(failing):
                fail = self.hosts[failing].folder / "recorder/fail"
                fail.write_text("attach --json -- train0")
                self.assertNotEqual(0, self.play())
                self.assertIn("refused for this test", self.output)
                fail.unlink()
                self.assertEqual([*changed, failing], list(self.files()))

    def test_failed_verification_fails_the_host_and_keeps_the_report(self):
        self.common["vfpass_verify"] = True
        self.assertNotEqual(0, self.play("--limit", "host1"))
        self.assertIn("train0: exit code 4", self.output)
        report = json.loads((self.folder / "reports/host1/verify-train0.json").read_text())
        self.assertEqual("failed", report["result"])

    def test_files_for_the_subnet_manager(self):
        for number, name in enumerate(HOSTS, 1):
            guids = {"port-guid": "{{ %d | vfpass.vfpass.rail_guid(0) }}" % number,
                     "node-guid": "{{ %d | vfpass.vfpass.rail_guid(0, role='node') }}" % number}
            self.variables[name]["vfpass_vms"].append(item(vf(index=0, infiniband=guids), vm="ib", tenant="blue"))
        self.common["vfpass_fleet"]["tenants"]["blue"]["partition"] = 0x1001
        playbook = self.folder / "subnet.yml"
        playbook.write_text("- hosts: all\n  gather_facts: false\n  tasks:\n    - vfpass.vfpass.subnet_manager: {directory: %s/sm}\n"
                            "      run_once: true\n" % self.folder)
        self.assertEqual(0, self.play("--check", "--diff", "--limit", "host1", playbook=playbook), self.output)
        self.assertFalse((self.folder / "sm").exists())
        self.assertIn("+blue=0x1001, ipoib, defmember=full : 0x0200000100000002, 0x0200000200000002, 0x0200000300000002 ;", self.output)
        self.assertEqual(0, self.play("--limit", "host1", playbook=playbook), self.output)
        self.assertEqual(3, len((self.folder / "sm/port-guids.txt").read_text().splitlines()))
        self.assertEqual(0, self.play("--limit", "host1", playbook=playbook), self.output)
        self.assertEqual({"host1": 0}, self.summary())
        # An automatic GUID needs the UUID.
        self.variables["host3"]["vfpass_vms"][1]["mapping"]["vfs"][0]["infiniband"] = {}
        self.assertNotEqual(0, self.play("--limit", "host1", playbook=playbook))
        self.assertIn("add uuid to the item of vfpass_vms", self.output)


if __name__ == "__main__":
    unittest.main()
