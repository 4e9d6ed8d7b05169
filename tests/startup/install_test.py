"""install_test.py BUILD CHECKOUT: an installed vfpass finds its libvirt module, and explains what is wrong with it."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1))
del sys.argv[1]


def configured_module():
    """The module's path when vfpass is not below a prefix that has one."""
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    prefix = re.search(r"^CMAKE_INSTALL_PREFIX:PATH=(.*)$", cache, re.MULTILINE)[1]
    return Path(prefix) / "libexec/vfpass/vfpass-libvirt.so"


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.prefix = self.folder / "usr"
        self.module = self.prefix / "libexec/vfpass/vfpass-libvirt.so"

    def install(self):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.prefix], check=True, stdout=subprocess.DEVNULL)

    def status(self, **environment):
        """`vfpass status`, which asks libvirt for its domains."""
        return subprocess.run([self.prefix / "sbin/vfpass", "--connect", "test:///default", "--state-dir", self.folder, "status"],
                              capture_output=True, text=True, check=False, cwd=self.folder,
                              env={"PATH": "/usr/bin", **environment})

    def test_installed_program_opens_the_module_of_its_prefix(self):
        self.install()
        result = self.status()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(os.access(self.prefix / "libexec/vfpass/vfpass-probe", os.X_OK))

    def test_missing_module_is_one_error(self):
        self.install()
        self.module.unlink()
        configured = configured_module()
        if configured.exists():
            self.skipTest(f"{configured} is installed")
        result = self.status()
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, f"vfpass: cannot use the libvirt module {configured}: No such file or directory (ENOENT)\n"
                                        "        install vfpass again: the module is a part of it\n")

    def test_commands_without_libvirt_work_without_the_module(self):
        self.install()
        self.module.unlink()
        result = subprocess.run([self.prefix / "sbin/vfpass", "--version"], capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_module_that_others_can_change_is_refused(self):
        self.install()
        self.module.chmod(0o666)
        result = self.status()
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, f"vfpass: cannot use the libvirt module {self.module}: "
                                        "users who cannot change vfpass itself can change it\n"
                                        "        install vfpass again: the module is a part of it\n")

    def test_damaged_module_is_one_error(self):
        self.install()
        self.module.write_text("not a library, and at least as long as the header of an ELF file" + "." * 64)
        result = self.status()
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 2, result.stderr)
        self.assertIn("invalid ELF header", result.stderr)

    def test_environment_and_directory_do_not_choose_the_module(self):
        self.install()
        (self.folder / self.module.name).write_text("another module")
        place = str(self.folder)
        result = self.status(LD_LIBRARY_PATH=place, PATH=place + ":/usr/bin", HOME=place)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
