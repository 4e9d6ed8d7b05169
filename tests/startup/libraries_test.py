"""libraries_test.py BUILD CHECKOUT: the shared libraries that each command loads. Every library costs every command start-up
time (docs/performance.md), and libvirt brings fifty."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1))
CHECKOUT = Path(sys.argv.pop(1))
VFPASS = BUILD / "sbin/vfpass"

# yaml-cpp only where the distribution has no static one (cmake/Dependencies.cmake).
ALLOWED = {"libstdc++", "libm", "libgcc_s", "libc", "ld-linux-x86-64", "libyaml-cpp"}
# libpci and the libraries that it needs, on Debian 12 and 13.
LIBPCI = {"libpci", "libz", "libresolv", "libudev", "libcap"}


def names(paths):
    """"libc" for /lib/x86_64-linux-gnu/libc.so.6."""
    return {re.sub(r"\.so(\.[0-9.]+)?$", "", Path(path).name) for path in paths}


def loaded(*arguments):
    """The exit status and the libraries that one call of vfpass loads, those opened at run time included. The dynamic linker
    reports each one before it runs the library's initialization functions."""
    result = subprocess.run([VFPASS, *map(str, arguments)], env={"LD_DEBUG": "libs", "PATH": "/usr/bin"}, text=True,
                            capture_output=True, check=False, errors="replace")
    return result.returncode, names(re.findall(r"calling init: (\S+)", result.stderr))


class Libraries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.tree = Path(cls.folder.name) / "tree"
        subprocess.run([CHECKOUT / "tests/hosts/make_host.py", "functions-64", cls.tree], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_commands_without_work_load_only_the_language_runtime(self):
        for arguments, expected in ((["--version"], 0), (["--help"], 0), (["attach", "--help"], 0), (["attac"], 2), ([], 0)):
            with self.subTest(arguments=arguments):
                status, libraries = loaded(*arguments)
                self.assertEqual(status, expected)
                self.assertTrue(libraries, "the dynamic linker reported nothing")
                self.assertEqual(libraries - ALLOWED, set())

    def read_host(self, *command):
        """The libraries, except those of the language, that a command loads while it reads the captured tree."""
        status, libraries = loaded("--sysroot", self.tree, "--state-dir", self.folder.name, "--config-dir", self.folder.name, *command)
        self.assertIn(status, (0, 1), "the command ran")
        return libraries - ALLOWED

    def test_commands_that_only_read_the_host_load_only_the_language_runtime(self):
        snapshot = Path(self.folder.name) / "snapshot"
        for command in (["topo"], ["topo", "--format", "nccl"], ["vf", "list"], ["doctor"], ["snapshot", snapshot]):
            with self.subTest(command=command):
                self.assertEqual(self.read_host(*command), set())

    def test_commands_that_print_model_names_also_load_libpci(self):
        for command in (["topo", "--json"], ["topo", "--format", "tree"], ["pf", "list"], ["init", "train0"]):
            with self.subTest(command=command):
                libraries = self.read_host(*command)
                self.assertIn("libpci", libraries)
                self.assertEqual(libraries - LIBPCI, set())

    def test_snapshot_to_a_tar_file_loads_libarchive(self):
        libraries = self.read_host("snapshot", Path(self.folder.name) / "snapshot.tar")
        self.assertIn("libarchive", libraries)
        self.assertEqual(libraries & {"libpci", "libvirt"}, set())

    def test_live_topology_does_not_load_libvirt(self):
        self.assertEqual(loaded("topo")[1] - ALLOWED, set())

    def test_a_command_on_domains_loads_libvirt(self):
        _, libraries = loaded("--connect", "test:///default", "--state-dir", self.folder.name, "status")
        self.assertIn("libvirt", libraries, "otherwise the other tests here prove nothing")

    def test_hook_has_no_libraries(self):
        result = subprocess.run(["readelf", "-d", BUILD / "sbin/vfpass-qemu-hook"], capture_output=True, text=True, check=True)
        self.assertIn("Dynamic section", result.stdout)
        self.assertNotIn("(NEEDED)", result.stdout)


if __name__ == "__main__":
    unittest.main()
