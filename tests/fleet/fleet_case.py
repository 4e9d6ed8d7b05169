"""Shared by the tests that run playbooks."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from fleet_data import COLLECTIONS, POLICY, PYTHON, CapturedHost, item, vf

HOSTS = ("host1", "host2", "host3")


class FleetCase(unittest.TestCase):
    """Three hosts at once. Each is a captured tree of its own, reached by a local connection."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.hosts = {}
        self.variables = {}
        for number, name in enumerate(HOSTS, 1):
            (self.folder / name).mkdir()
            self.hosts[name] = host = CapturedHost(self.folder / name, number)
            mac = "{{ %d | vfpass.vfpass.rail_mac(rail=0) }}" % number
            entry = vf(index=1, mac=mac, vlan={"id": 100}, guest={"address": f"192.168.100.{number}/24", "mtu": 9000})
            self.variables[name] = {**{f"vfpass_{key}": value for key, value in host.options().items()},
                                    "vfpass_vms": [item(entry, tenant="blue")], "vfpass_host_policy": POLICY}
        self.common = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON, "vfpass_become": False,
                       "vfpass_fleet": {"rails": {"rail0": {"network": "192.168.100.0/24", "mtu": 9000}}, "tenants": {"blue": {"vlans": [100]}}},
                       "vfpass_reports_directory": str(self.folder / "reports"), "vfpass_reports": ["host"]}

    def play(self, *options, playbook="vfpass.vfpass.site"):
        for name in HOSTS:
            self.variables[name]["vfpass_program"] = self.wrapper(name)
        (self.folder / "inventory.json").write_text(json.dumps({"all": {"vars": self.common, "hosts": self.variables}}))
        environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_HOME": str(self.folder / "home"),
                       "ANSIBLE_LOCAL_TEMP": str(self.folder / "home"), "ANSIBLE_REMOTE_TEMP": str(self.folder / "home"),
                       "ANSIBLE_NOCOLOR": "1", "ANSIBLE_STDOUT_CALLBACK": "default", "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(["ansible-playbook", "-i", self.folder / "inventory.json", "--forks", "3", playbook, *options],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=self.folder)
        self.output = run.stdout.replace("\\n", "\n")
        return run.returncode

    def wrapper(self, name):
        """Each host has its own recorder."""
        file = self.folder / name / "vfpass"
        environment = self.hosts[name].environment()
        file.write_text("#!/bin/sh\n" + "".join(f"export {key}='{value}'\n" for key, value in environment.items())
                        + f"exec {self.hosts[name].options()['program']} \"$@\"\n")
        file.chmod(0o755)
        return str(file)

    def changing_calls(self):
        return {name: calls for name, host in self.hosts.items() if (calls := host.changing_calls())}

    def files(self):
        return {name: files for name, host in self.hosts.items() if (files := host.files())}

    def summary(self):
        """changed= by host, of Ansible's recap."""
        recap = self.output.split("PLAY RECAP")[-1]
        return {name: int(line.split("changed=")[1].split()[0]) for line in recap.splitlines()
                for name in HOSTS if line.startswith(name)}
