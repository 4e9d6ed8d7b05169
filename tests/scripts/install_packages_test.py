"""scripts/install-packages, with stubs of dpkg, apt-get and systemctl: no service of a package starts, now or at the next boot."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from loaded import CHECKOUT

POLICY = "/usr/sbin/policy-rc.d"
DENIED = 101  # exit status of policy-rc.d: the service may not be started (invoke-rc.d(8))
# What a package with a service does when it is installed: it asks the policy.
INSTALLS = f"""#!/bin/sh
[ "$1" = update ] && exit 0
{{ "$FOLDER/policy-rc.d" libvirtd start; echo "policy: $?"; echo "apt-get $*"; }} >>"$FOLDER/log"
exit "$APT_STATUS"
"""
LISTS = """#!/bin/sh
[ "$1" != -W ] || exit 1
[ "$1" != -L ] || printf '%s\\n' /lib/systemd/system/libvirtd.service /lib/systemd/system/libvirtd@.service /usr/sbin/libvirtd
"""


class InstallPackages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.policy = self.folder / "policy-rc.d"
        script = (CHECKOUT / "scripts/install-packages").read_text(encoding="utf-8")
        self.assertEqual(script.count(POLICY), 1)
        self.program("scripts/install-packages", script.replace(POLICY, str(self.policy)))
        (self.folder / "scripts/packages").write_text("# comment\nlibvirt-daemon-system\n", encoding="utf-8")
        self.program("bin/apt-get", INSTALLS)
        self.program("bin/dpkg-query", LISTS)
        self.program("bin/systemctl", '#!/bin/sh\necho "systemctl $*" >>"$FOLDER/log"\n')
        self.program("bin/sudo", '#!/bin/sh\nexec "$@"\n')

    def program(self, name, text):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def install(self, apt_status=0):
        """The exit status, and what the stubs saw."""
        environment = dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}", FOLDER=str(self.folder),
                           APT_STATUS=str(apt_status))
        done = subprocess.run([self.folder / "scripts/install-packages"], env=environment, capture_output=True, check=False)
        return done.returncode, (self.folder / "log").read_text(encoding="utf-8").splitlines()

    def test_a_policy_denies_services_while_packages_are_installed(self):
        status, seen = self.install()
        self.assertEqual(status, 0)
        self.assertEqual(seen[:2], [f"policy: {DENIED}", "apt-get install -y --no-install-recommends libvirt-daemon-system"])
        self.assertFalse(self.policy.exists())

    def test_new_services_do_not_start_at_the_next_boot(self):
        self.assertEqual(self.install()[1][2:], ["systemctl disable libvirtd.service"])

    def test_the_policy_goes_after_a_failure(self):
        status, seen = self.install(apt_status=100)
        self.assertEqual(status, 1)
        self.assertEqual([line for line in seen if line.startswith("policy")], [f"policy: {DENIED}"] * 3)
        self.assertFalse(self.policy.exists())

    def test_a_policy_of_the_administrator_stays(self):
        self.program("policy-rc.d", "#!/bin/sh\nexit 104\n")
        self.assertEqual(self.install()[1][0], "policy: 104")
        self.assertEqual(self.policy.read_text(encoding="utf-8"), "#!/bin/sh\nexit 104\n")


if __name__ == "__main__":
    unittest.main(argv=["install_packages_test"])
