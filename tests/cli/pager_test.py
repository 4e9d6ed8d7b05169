"""pager_test.py VFPASS: long output on a terminal goes through a pager, and everything else does not."""

import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

VFPASS = str(Path(sys.argv.pop(1)).resolve())
HOSTS = Path(__file__).resolve().parents[1] / "hosts"
TREE = ["topo", "--format", "tree"]
# Marks what it shows, so that a test sees who wrote it.
PAGER = """#!/bin/sh
echo "pager $1 LESS=$LESS secure=$LESSSECURE"
sed 's/^/page: /'
"""


class Pager(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([HOSTS / "make_host.py", "h100-8", cls.folder / "host"], check=True)
        (cls.folder / "bin").mkdir()
        for name in ("mine", "less"):
            program = cls.folder / "bin" / name
            program.write_text(PAGER)
            program.chmod(0o755)

    def on_terminal(self, *command, keys=b"", **environment):
        """The exit status, and what a user sees of standard output and standard error."""
        variables = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TERM": "xterm", "LC_ALL": "C.UTF-8", "HOME": "/", "NO_COLOR": "1", **environment}
        terminal, end = pty.openpty()
        program = subprocess.Popen([VFPASS, "--sysroot", self.folder / "host", *command], stdin=end, stdout=end, stderr=end,
                                   env=variables, start_new_session=True)
        os.close(end)
        os.write(terminal, keys)
        seen = b""
        while select.select([terminal], [], [], 60)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the last process has closed the terminal
                break
            seen += part
        os.close(terminal)
        return program.wait(60), seen.decode().replace("\r\n", "\n")

    def test_chooses_the_pager(self):
        for variables, shown in (({}, "pager  LESS=FRX secure="), ({"PAGER": "mine a"}, "pager a "), ({"LESS": "S"}, "LESS=S "),
                                 ({"PAGER": "less", "VFPASS_PAGER": "mine b"}, "pager b ")):
            with self.subTest(variables=variables):
                code, text = self.on_terminal(*TREE, **variables)
                self.assertEqual(code, 0, text)
                self.assertIn(shown, text)
                self.assertIn("\npage: pci0000:", text)

    def test_uses_none(self):
        for variables in ({"PAGER": "cat"}, {"PAGER": ""}, {"PAGER": "mine", "VFPASS_PAGER": ""}, {"TERM": "dumb"}, {"TERM": ""},
                          {"PAGER": "/no/such/pager"}):
            with self.subTest(variables=variables):
                code, text = self.on_terminal(*TREE, **variables)
                self.assertEqual(code, 0, text)
                self.assertNotIn("page", text)
                self.assertTrue(text.startswith("pci0000:"), text[:200])
        for command in ([*TREE, "--no-pager"], ["topo", "--json"], ["topo", "--format", "svg"], ["version"]):
            with self.subTest(command=command):
                code, text = self.on_terminal(*command)
                self.assertEqual(code, 0, text)
                self.assertNotIn("page: ", text)

    def test_is_for_terminals(self):
        piped = subprocess.run([VFPASS, "--sysroot", self.folder / "host", *TREE], capture_output=True, text=True, check=True,
                               env={**os.environ, "PAGER": "mine", "TERM": "xterm"})
        self.assertTrue(piped.stdout.startswith("pci0000:"))

    def test_keeps_the_exit_status(self):
        code, text = self.on_terminal("doctor")
        self.assertEqual(code, 1, text)
        self.assertIn("page: ", text)
        code, text = self.on_terminal("topo", "--vm", "none")
        self.assertEqual(code, 2, text)
        self.assertNotIn("page: ", text)

    def test_user_may_leave_early(self):
        for pager in ("true", "head -n 1"):
            with self.subTest(pager=pager):
                code, text = self.on_terminal(*TREE, PAGER=pager)
                self.assertEqual(code, 0, text)
                self.assertNotIn("cannot write", text)

    @unittest.skipUnless(Path("/usr/bin/less").exists(), "needs less")
    def test_less_and_its_keys(self):
        code, text = self.on_terminal(*TREE, keys=b"q", PATH="/usr/bin:/bin", LINES="10")
        self.assertEqual(code, 0, text)
        self.assertIn("└─", text)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_runs_no_other_program_with_the_rights_of_sudo(self):
        for variables, shown in (({"PAGER": "mine"}, "secure=1"), ({"LESSSECURE": "0", "LESSSECURE_ALLOW": "shell"}, "secure=1")):
            code, text = self.on_terminal(*TREE, SUDO_UID="1000", **variables)
            self.assertEqual(code, 0, text)
            self.assertIn(shown, text)
            self.assertIn("pager  LESS", text)
        _, text = self.on_terminal(*TREE, SUDO_UID="1000", PAGER="cat")
        self.assertNotIn("page: ", text)


if __name__ == "__main__":
    unittest.main()
