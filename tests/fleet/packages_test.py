"""The role packages and the playbook upgrade, on a host whose apt and dpkg work in a directory of their own, with packages made here."""

import os
import shutil
import subprocess
import unittest

from fleet_case import FleetCase
from fleet_data import CHECKOUT


@unittest.skipIf(os.geteuid() != 0, "dpkg unpacks as root only")
class Packages(FleetCase):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.apt = self.root / "etc/apt"
        for each in ("etc/apt/sources.list.d", "etc/apt/keyrings", "etc/apt/parts", "var/lib/dpkg/updates", "var/lib/dpkg/info",
                     "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt", "tmp"):
            (self.root / each).mkdir(parents=True)
        for each in ("var/lib/dpkg/status", "var/lib/dpkg/available"):
            (self.root / each).touch()
        configuration = self.folder / "apt.conf"
        configuration.write_text(f"""Dir "{self.root}"; Dir::State::status "{self.root}/var/lib/dpkg/status"; Dir::Etc::Parts "parts";
            Dir::Bin::methods "/usr/lib/apt/methods"; Dir::Bin::solvers:: "/usr/lib/apt/solvers"; Dir::Bin::dpkg "/usr/bin/dpkg";
            Dir::Log "{self.root}/var/log/apt"; APT::Architecture "amd64"; APT::Sandbox::User "root";
            DPkg::Options {{ "--root={self.root}"; "--log=/dev/null"; }};""")
        saved = os.environ.get("APT_CONFIG")
        os.environ["APT_CONFIG"] = str(configuration)
        self.addCleanup(lambda: os.environ.pop("APT_CONFIG") if saved is None else os.environ.update(APT_CONFIG=saved))
        self.publish("1.0-1")
        self.common.update(vfpass_repository_url=f"file:{self.folder}/repository/apt", vfpass_repository_suite="bookworm",
                           vfpass_repository_key=str(self.folder / "repository/vfpass.asc"), vfpass_apt_directory=str(self.apt))
        # A captured tree has no leases.
        (self.hosts["host1"].folder / "recorder/status").write_text("""echo '{"leases": []}'""")
        self.role = self.folder / "role.yml"
        self.role.write_text("- hosts: host1\n  gather_facts: false\n  roles: [vfpass.vfpass.packages]\n")

    def publish(self, version):
        packages = self.folder / "packages"
        shutil.rmtree(packages, ignore_errors=True)
        (packages / "root/DEBIAN").mkdir(parents=True)
        (packages / "root/DEBIAN/control").write_text(f"Package: vfpass\nVersion: {version}\nArchitecture: amd64\n"
                                                      "Maintainer: A test <test@localhost>\nDescription: A package of a test\n")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", packages / "root", packages], check=True, capture_output=True)
        subprocess.run([CHECKOUT / "scripts/repository", "--codename", "bookworm", packages, self.folder / "repository"], check=True,
                       capture_output=True, env={**os.environ, "APT_CONFIG": "/dev/null"})

    def installed(self):
        found = subprocess.run(["dpkg-query", f"--root={self.root}", "--show", "--showformat", "${Version}", "vfpass"], capture_output=True,
                               text=True, check=False)
        return found.stdout if found.returncode == 0 else None

    def run_role(self, *options):
        self.assertEqual(0, self.play("--limit", "host1", *options, playbook=self.role), self.output)

    def test_check_then_install_then_nothing(self):
        self.run_role("--check", "--diff")
        self.assertEqual((None, []), (self.installed(), list((self.apt / "sources.list.d").iterdir())))
        self.run_role()
        self.assertEqual("1.0-1", self.installed())
        self.run_role()
        self.assertEqual({"host1": 0}, self.summary())

    def test_a_later_version_waits_for_the_upgrade(self):
        self.run_role()
        self.publish("1.1-1")
        self.run_role()
        self.assertEqual("1.0-1", self.installed())
        for options, version in ((("--check",), "1.0-1"), ((), "1.1-1")):
            self.assertEqual(0, self.play("--limit", "host1", *options, playbook="vfpass.vfpass.upgrade"), self.output)
            self.assertEqual(version, self.installed(), self.output)

    def test_a_version_can_be_chosen_and_left_again(self):
        self.run_role()
        self.publish("1.1-1")
        for version in ("1.1-1", "1.0-1"):
            self.common["vfpass_packages_version"] = version
            self.run_role()
            self.assertEqual(version, self.installed())

    def test_upgrade_stops_at_the_first_host_that_fails(self):
        self.run_role()
        self.publish("1.1-1")
        (self.hosts["host1"].folder / "recorder/fail").write_text("status --json")
        self.assertNotEqual(0, self.play(playbook="vfpass.vfpass.upgrade"))
        self.assertEqual("1.0-1", self.installed())
        self.assertEqual([], self.hosts["host2"].calls())

    def test_upgrade_that_loses_a_lease_fails(self):
        self.run_role()
        self.publish("1.1-1")
        lease = '{"domain": {"name": "train0", "uuid": "u"}, "entry": "rail0", "vf": "0000:3b:00.2"}'
        # The first call sees the lease, the second does not.
        (self.hosts["host1"].folder / "recorder/status").write_text(
            f"""if mkdir "$RECORDER/seen"; then echo '{{"leases": [{lease}]}}'; else echo '{{"leases": []}}'; fi""")
        self.assertNotEqual(0, self.play("--limit", "host1", playbook="vfpass.vfpass.upgrade"))
        self.assertIn("the upgrade changed the leases", self.output)

    def test_repository_needs_suite_and_key(self):
        self.common["vfpass_repository_suite"] = ""
        self.assertNotEqual(0, self.play("--limit", "host1", playbook=self.role))
        self.assertIn("needs vfpass_repository_suite", self.output)


if __name__ == "__main__":
    unittest.main()
