"""AppArmor: the profiles in Debian's libvirt packages permit what vfpass adds to libvirt, so that it needs no profile of its own
(docs/security.md). They are read with apparmor_parser, and libvirt's own virt-aa-helper writes the rules of a domain. Nothing
is loaded into a kernel. Needs Debian's mirror.

apparmor_test.py RELEASE...: of these releases, otherwise of Debian 12 and 13."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
RELEASES = sys.argv[1:] or ["bookworm", "trixie"]
PACKAGES = "libvirt-daemon-system libvirt-daemon libvirt-daemon-driver-qemu"
UUID = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"
# A VF as vfpass writes it, and the domain settings that concern files or QEMU's command line.
DOMAIN = f"""<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>train0</name><uuid>{UUID}</uuid>
<memory unit='GiB'>1</memory><memoryBacking><hugepages><page size='2048' unit='KiB'/></hugepages></memoryBacking>
<os><type arch='x86_64' machine='q35'>hvm</type></os><devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<hostdev mode='subsystem' type='pci' managed='no'><driver name='vfio'/><alias name='ua-vfpass-rail0'/>
<source><address domain='0x0000' bus='0x3b' slot='0x00' function='0x2'/></source></hostdev></devices>
<qemu:commandline><qemu:arg value='-fw_cfg'/><qemu:arg value='name=opt/ovmf/X-PciMmio64Mb,string=65536'/></qemu:commandline>
</domain>"""
# libvirt adds it when it has created the directory (qemuProcessBuildDestroyMemoryPathsImpl).
HUGE_PAGES = "/dev/hugepages/libvirt/qemu/1-train0/{,**}"

# downloads and unpacks the packages of $1 below $2.
DOWNLOAD = f"""
source {CHECKOUT}/lab/image/debian.sh
use_release "$1" "$2/apt" && mkdir "$2/debs" && cd "$2/debs" && apt-get -qq -o APT::Sandbox::User=root download {PACKAGES}
for deb in *.deb; do dpkg -x "$deb" "$2/root"; done
"""


def expression(glob):
    """The regular expression of a path in a profile (apparmor.d(5), globbing)."""
    tokens = {"**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    parts = re.findall(r"\*\*|\[[^]]*\]|.", glob)
    return "".join(tokens.get(part, part if part.startswith("[") else re.escape(part)) for part in parts)


def rules(text, path):
    """(deny, permissions) of every rule for the path. Rules with variables concern other paths."""
    found = []
    for line in text.splitlines():
        match = re.match(r'\s*(?:audit )?(deny )?(?:owner )?"?(/[^\s"]*)"?\s+([a-zA-Z]+)\s*,', line)
        if match and "@" not in match[2] and re.fullmatch(expression(match[2]), path):
            found.append((bool(match[1]), match[3]))
    return found


def own_release():
    return re.search(r"VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(encoding="utf-8"))[1]


class AppArmorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.roots = {}
        for release in RELEASES:
            target = Path(directory.name) / release
            target.mkdir()
            subprocess.run(["bash", "-euc", DOWNLOAD, "bash", release, target], check=True)
            cls.roots[release] = target / "root"
            profiles = target / "root/etc/apparmor.d"
            # The abstractions of AppArmor itself are this machine's.
            for name in ("abi", "abstractions", "tunables"):
                shutil.copytree(f"/etc/apparmor.d/{name}", profiles / name, dirs_exist_ok=True)
            (profiles / "local/abstractions").mkdir(parents=True, exist_ok=True)
            # Debian's maintainer scripts create these.
            for name in ("usr.sbin.libvirtd", "usr.lib.libvirt.virt-aa-helper", "abstractions/libvirt-qemu"):
                (profiles / "local" / name).touch()

    def parse(self, release, profile, *options):
        base = self.roots[release] / "etc/apparmor.d"
        done = subprocess.run(["apparmor_parser", "--base", base, "--skip-kernel-load", "--skip-cache", *options, base / profile],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def libvirtd(self, release):
        self.parse(release, "usr.sbin.libvirtd")
        text = self.parse(release, "usr.sbin.libvirtd", "--preprocess")
        # Without the profile of a helper.
        return re.sub(r"\n\s*profile qemu_bridge_helper \{.*?\n\s*\}", "", text, flags=re.DOTALL)

    def test_libvirtd_runs_the_hook_unconfined(self):
        for release in RELEASES:
            found = rules(self.libvirtd(release), "/usr/sbin/vfpass-qemu-hook")
            self.assertEqual([rule for rule in found if rule[0]], [], release)
            executing = {permissions for _, permissions in found if "x" in permissions}
            # U: without a profile of its own, a program runs unconfined; upper case: with a clean environment.
            self.assertEqual(executing, {"PUx"}, release)

    def test_libvirtd_runs_the_hook_that_remains_after_removal(self):
        for release in RELEASES:
            found = rules(self.libvirtd(release), "/etc/libvirt/hooks/qemu.d/vfpass")
            self.assertEqual([rule for rule in found if rule[0]], [], release)
            # Under its own profile: a script that only reads its standard input.
            self.assertTrue(any("r" in permissions and "ix" in permissions for _, permissions in found), (release, found))

    def test_libvirtd_itself_may_use_what_the_hook_prepares(self):
        for release in RELEASES:
            profile = self.libvirtd(release)
            for path in ("/sys/bus/pci/drivers/vfio-pci/bind", "/dev/vfio/42"):
                found = rules(profile, path)
                self.assertTrue(any({"r", "w"} <= set(permissions) for deny, permissions in found if not deny), (release, path))
                self.assertFalse(any(deny for deny, _ in found), (release, path))
            # QEMU's limit of locked memory.
            self.assertIn("capability sys_resource,", profile, release)

    @unittest.skipUnless(own_release() in RELEASES, "virt-aa-helper needs libraries of its own release")
    def test_qemu_may_open_the_devices_and_huge_pages(self):
        root = self.roots[own_release()]
        name = f"libvirt-{UUID}"
        helper = root / "usr/lib/libvirt/virt-aa-helper"
        # It reads /etc/apparmor.d only.
        script = 'mount --bind "$PROFILES" /etc/apparmor.d && "$HELPER" "$@"'

        def rules_of_domain(*options):
            done = subprocess.run(["unshare", "--mount", "bash", "-euc", script, "bash", *options, "--dryrun", "--uuid", name],
                                  env={"PATH": os.environ["PATH"], "PROFILES": str(root / "etc/apparmor.d"),
                                       "HELPER": str(helper)}, input=DOMAIN, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout + done.stderr

        text = rules_of_domain("--create")
        for suffix in ("", ".files"):
            (root / f"etc/apparmor.d/libvirt/{name}{suffix}").write_text("# of a running domain\n", encoding="utf-8")
        text += rules_of_domain("--replace", "-F", HUGE_PAGES)
        for path in ("/dev/vfio/vfio", "/dev/vfio/42", "/dev/hugepages/libvirt/qemu/1-train0/ram0"):
            found = rules(text, path)
            self.assertTrue(any({"r", "w"} <= set(permissions) for deny, permissions in found if not deny), (path, text))
        # The whole profile is valid and denies none of it.
        profiles = root / "etc/apparmor.d"
        generated = "".join(line + "\n" for line in text.splitlines() if re.match(r'\s+"/.*,$', line))
        template = (profiles / "libvirt/TEMPLATE.qemu").read_text(encoding="utf-8").replace("LIBVIRT_TEMPLATE", name)
        (profiles / "libvirt" / name).write_text(template.replace("\n}", "\n" + generated + "}"), encoding="utf-8")
        self.parse(own_release(), f"libvirt/{name}")
        whole = self.parse(own_release(), f"libvirt/{name}", "--preprocess")
        for path in ("/dev/vfio/vfio", "/dev/vfio/42", "/dev/hugepages/libvirt/qemu/1-train0/ram0"):
            self.assertFalse(any(deny for deny, _ in rules(whole, path)), path)
        self.assertIn("capability ipc_lock,", whole)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
