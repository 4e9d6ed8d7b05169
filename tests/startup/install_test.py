"""install_test.py BUILD CHECKOUT: what an installation without packages needs to run."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1))
del sys.argv[1]


class Install(unittest.TestCase):
    def test_installed_program_opens_libvirt(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = Path(folder) / "usr"
            subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
            result = subprocess.run([prefix / "sbin/vfpass", "--connect", "test:///default", "--state-dir", folder, "status"],
                                    capture_output=True, text=True, check=False, cwd=folder, env={"PATH": "/usr/bin"})
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(os.listdir(prefix / "libexec/vfpass"), ["vfpass-probe"])
            self.assertTrue(os.access(prefix / "libexec/vfpass/vfpass-probe", os.X_OK))


if __name__ == "__main__":
    unittest.main()
