"""lab/gpu/driver/Makefile and lab/ofed/Makefile: the sources that they hand to kbuild."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from loaded import CHECKOUT

# Instead of kbuild: an object is made once, as if no source were newer.
HEADERS = """modules:
\t[ -e $(M)/all.o ] || cp /bin/true $(M)/all.o
\tfor module in stand_in_gpu ofed_files; do cp $(M)/all.o $(M)/$$module.ko; done
"""


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "headers").mkdir()
        (self.folder / "headers/Makefile").write_text(HEADERS, encoding="utf-8")

    def make(self, checkout, sources):
        """The files in the build directory after a run in CHECKOUT, each with what it leads to."""
        copy = self.folder / checkout / sources
        if not copy.exists():
            shutil.copytree(CHECKOUT / "lab" / sources, copy)
        build = self.folder / "build"
        subprocess.run(["make", "-C", str(copy), f"KDIR={self.folder}/headers", f"OUT={build}"], check=True,
                       stdout=subprocess.DEVNULL)
        return {file.name: file.readlink() for file in build.iterdir() if file.is_symlink()}

    def test_lead_to_the_checkout_that_builds(self):
        for sources in ("gpu/driver", "ofed"):
            first = self.make("one", sources)
            self.assertIn("Kbuild", first)
            (self.folder / "build/all.o").write_text("of the first checkout", encoding="utf-8")
            second = self.make("two", sources)
            self.assertEqual(first.keys(), second.keys())
            for name, target in second.items():
                self.assertTrue(target.is_relative_to(self.folder / "two"), f"{name}: {target}")
            self.assertEqual(Path("/bin/true").read_bytes(), (self.folder / "build/all.o").read_bytes())
            shutil.rmtree(self.folder / "build")

    def test_stay_in_the_next_run(self):
        first = self.make("one", "gpu/driver")
        kept = (self.folder / "build/all.o").stat().st_mtime_ns
        self.assertEqual(first, self.make("one", "gpu/driver"))
        self.assertEqual(kept, (self.folder / "build/all.o").stat().st_mtime_ns)


if __name__ == "__main__":
    unittest.main(argv=["lab_modules_test"])
