"""The maintainer scripts of the Debian package, run in a directory (DPKG_ROOT) with a fake vfpass. They must never touch
libvirt's hooks of others, and a managed VM must not start without its VFs after a removal."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(sys.argv.pop(1))  # BUILD/packaging
SOURCE = Path(__file__).resolve().parents[2] / "packaging"
MANAGED = "<domain><metadata><vfpass xmlns='https://vfpass.org/xmlns/domain/1'/></metadata></domain>\n"
PLAIN = "<domain><name>plain</name></domain>\n"
REFUSAL = "vfpass: without the hook, these VMs could start with unconfigured VFs: train0\n"


class MaintainerScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("etc/libvirt/hooks/qemu.d", "etc/libvirt/qemu", "etc/vfpass/vms", "run/vfpass", "usr/sbin",
                     "usr/share/vfpass", "tools"):
            (self.root / name).mkdir(parents=True)
        (self.root / "var/lib/vfpass").mkdir(parents=True)
        self.program("usr/share/vfpass/removed-hook", (SOURCE / "removed-hook").read_text(encoding="utf-8"))
        # systemd's tools need root, and lab tests run them.
        for tool in ("systemd-sysusers", "systemd-tmpfiles"):
            self.program(f"tools/{tool}", "#!/bin/sh\nexit 0\n")
        self.leases(0)
        self.link = self.root / "etc/libvirt/hooks/qemu.d/vfpass"
        self.own = self.program("etc/libvirt/hooks/qemu", "#!/bin/sh\nexit 0\n")
        self.other = self.program("etc/libvirt/hooks/qemu.d/10-other", "#!/bin/sh\nexit 0\n")

    def program(self, name, text):
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def leases(self, status):
        """The exit status of `vfpass hook remove --dry-run`: 5 while there are leases."""
        self.program("usr/sbin/vfpass", f"#!/bin/sh\n[ {status} = 0 ] || printf '{REFUSAL}' >&2\nexit {status}\n")

    def domain(self, name, text, folder="etc/libvirt/qemu"):
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{name}.xml").write_text(text, encoding="utf-8")

    def script(self, name, *arguments):
        environment = {"PATH": f"{self.root}/tools:{os.environ['PATH']}", "DPKG_ROOT": str(self.root)}
        return subprocess.run([SCRIPTS / name, *arguments], env=environment, capture_output=True, text=True, check=False)

    def run_script(self, name, *arguments):
        done = self.script(name, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def install(self):
        self.run_script("postinst", "configure", "")
        self.assertEqual(os.readlink(self.link), "/usr/sbin/vfpass-qemu-hook")

    def remove(self):
        return self.run_script("prerm", "remove") + self.run_script("postrm", "remove")

    def start(self, xml, operation="prepare", suboperation="begin"):
        """Calls the hook as libvirt does."""
        return subprocess.run([self.link, "train0", operation, suboperation, "-"], input=xml, capture_output=True, text=True,
                              check=False)

    def test_managed_vm_does_not_start_after_removal(self):
        self.install()
        self.remove()
        refused = self.start(MANAGED)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("install it again", refused.stderr)
        self.assertEqual(len(refused.stderr.splitlines()), 1, "libvirt puts it into its own message")

    def test_device_without_metadata_does_not_start_after_removal(self):
        self.install()
        self.remove()
        self.assertEqual(self.start("<domain><hostdev><alias name='ua-vfpass-rail0'/></hostdev></domain>").returncode, 1)

    def test_other_vms_and_other_operations_are_not_refused_after_removal(self):
        self.install()
        self.remove()
        self.assertEqual(self.start(PLAIN).returncode, 0)
        for operation, suboperation in (("reconnect", "begin"), ("started", "begin"), ("release", "end"), ("stopped", "end"),
                                        ("migrate", "begin"), ("prepare", "end")):
            self.assertEqual(self.start(MANAGED, operation, suboperation).returncode, 0, operation)

    def test_hook_after_removal_needs_no_program(self):
        self.install()
        self.remove()
        done = subprocess.run(["/bin/sh", self.link, "vm", "prepare", "begin", "-"], input=MANAGED, env={"PATH": "/nonexistent"},
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "not found" in done.stderr), (1, False))

    def test_installing_again_restores_the_link(self):
        self.install()
        self.leases(5)
        self.remove()
        self.run_script("postinst", "configure", "0.1.0-1")
        self.assertEqual(os.readlink(self.link), "/usr/sbin/vfpass-qemu-hook")
        self.assertFalse((self.root / "var/lib/vfpass/leases-at-removal").exists())

    def test_failed_removal_restores_the_link(self):
        self.install()
        self.run_script("prerm", "remove")
        self.run_script("postinst", "abort-remove")
        self.assertTrue(self.link.is_symlink())

    def test_upgrade_leaves_the_hook_as_the_administrator_has_it(self):
        self.install()
        self.run_script("prerm", "upgrade", "0.2.0-1")
        self.run_script("postrm", "upgrade", "0.2.0-1")
        self.assertTrue(self.link.is_symlink())
        self.link.unlink()
        self.run_script("postinst", "configure", "0.1.0-1")
        self.assertFalse(self.link.is_symlink())

    def test_hooks_of_others_are_never_changed(self):
        before = [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in (self.own, self.other)]
        self.install()
        self.remove()
        self.run_script("postrm", "purge")
        self.assertEqual(before, [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in (self.own, self.other)])
        self.assertEqual(list(self.link.parent.iterdir()), [self.other])

    def test_foreign_file_in_the_hooks_place_stays(self):
        self.program("etc/libvirt/hooks/qemu.d/vfpass", "#!/bin/sh\nexit 0\n")
        self.remove()
        self.run_script("postrm", "purge")
        self.assertEqual(self.link.read_text(encoding="utf-8"), "#!/bin/sh\nexit 0\n")

    def test_removal_names_the_vms_with_leases(self):
        self.install()
        self.domain("train0", MANAGED)
        self.domain("plain", PLAIN)
        said = self.remove()
        self.assertIn("        train0\n", said)
        self.assertIn("`vfpass detach VM`", said)
        self.assertIn("with `vfpass detach VM --keep`", said)
        self.assertNotIn("plain", said)

    def test_purge_is_refused_while_a_domain_has_our_devices(self):
        for folder in ("etc/libvirt/qemu", "run/libvirt/qemu"):
            with self.subTest(folder):
                self.install()
                self.domain("train0", MANAGED, folder)
                self.remove()
                done = self.script("postrm", "purge")
                self.assertEqual(done.returncode, 1)
                self.assertIn("cannot purge", done.stderr)
                self.assertIn("        train0\n", done.stderr)
                self.assertIn("vfpass detach VM", done.stderr)
                self.assertEqual(self.start(MANAGED).returncode, 1)
                self.assertTrue((self.root / "var/lib/vfpass").exists())
                (self.root / folder / "train0.xml").unlink()

    def test_purge_is_refused_while_the_database_has_leases(self):
        self.install()
        self.leases(5)
        self.remove()
        done = self.script("postrm", "purge")
        self.assertEqual(done.returncode, 1)
        self.assertIn("train0", done.stderr)

    def test_removal_leaves_no_old_metrics(self):
        self.install()
        metrics = self.root / "var/lib/prometheus/node-exporter/vfpass.prom"
        metrics.parent.mkdir(parents=True)
        metrics.write_text("# EOF\n", encoding="utf-8")
        self.remove()
        self.assertFalse(metrics.exists())

    def test_purge_removes_what_the_package_made(self):
        self.install()
        (self.root / "etc/vfpass/seal.key").write_text("key", encoding="utf-8")
        (self.root / "etc/vfpass/vms/train0.yaml").write_text("version: 1", encoding="utf-8")
        wants = self.root / "etc/systemd/system/timers.target.wants"
        wants.mkdir(parents=True)
        (wants / "vfpass-gc.timer").symlink_to("/usr/lib/systemd/system/vfpass-gc.timer")
        rule = self.root / "etc/udev/rules.d/95-vfpass-vf.rules"
        rule.parent.mkdir(parents=True)
        rule.symlink_to("/usr/share/vfpass/network/95-vfpass-vf.rules")
        self.remove()
        self.assertTrue(rule.is_symlink(), "an installation after a removal has it active again")
        self.run_script("postrm", "purge")
        for name in ("var/lib/vfpass", "run/vfpass", "etc/vfpass/seal.key"):
            self.assertFalse((self.root / name).exists(), name)
        self.assertFalse((wants / "vfpass-gc.timer").is_symlink())
        self.assertFalse(rule.is_symlink())
        self.assertTrue((self.root / "etc/vfpass/vms/train0.yaml").exists(), "the administrator's own file")

    def test_purge_keeps_rules_of_the_administrator(self):
        self.install()
        rule = self.root / "etc/udev/rules.d/95-vfpass-vf.rules"
        rule.parent.mkdir(parents=True)
        rule.write_text("# own\n", encoding="utf-8")
        self.remove()
        self.run_script("postrm", "purge")
        self.assertEqual(rule.read_text(encoding="utf-8"), "# own\n")

    @unittest.skipUnless(shutil.which("shellcheck"), "needs shellcheck")
    def test_scripts_are_clean_with_what_cmake_inserts(self):
        for script in ("postinst", "prerm", "postrm", "rpm-post", "rpm-preun"):
            # SC2317: each script has functions that only another one calls.
            done = subprocess.run(["shellcheck", "--shell=sh", "--exclude=SC2317,SC2034", SCRIPTS / script], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_no_script_starts_or_stops_libvirt(self):
        for script in ("postinst", "prerm", "postrm", "rpm-post", "rpm-preun", "rpm-postun"):
            for line in (SCRIPTS / script).read_text(encoding="utf-8").splitlines():
                if "systemctl" in line or "deb-systemd-invoke" in line or "service " in line:
                    self.assertNotRegex(line, r"libvirt|virtqemu|restart|\bstart\b", script)

    def test_no_script_enables_a_unit(self):
        for script in ("postinst", "prerm", "postrm", "rpm-post", "rpm-preun", "rpm-postun"):
            self.assertNotRegex((SCRIPTS / script).read_text(encoding="utf-8"),
                                r"systemctl[^\n]*\b(re)?enable\b|\bpreset|deb-systemd-helper|update-rc\.d|multi-user\.target\.wants/vfpass",
                                script)

    def test_no_script_changes_drivers_or_the_boot_configuration(self):
        for script in ("postinst", "prerm", "postrm", "rpm-post", "rpm-preun", "rpm-postun"):
            self.assertNotRegex((SCRIPTS / script).read_text(encoding="utf-8"),
                                r"grub|initramfs|dracut|kernel-install|efibootmgr|bootctl|/boot\b|/etc/default/|modprobe|insmod|depmod|dkms|"
                                r"modules-load|sysctl|firmware|mlxconfig|mstconfig", script)


if __name__ == "__main__":
    unittest.main()
