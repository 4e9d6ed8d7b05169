"""lab/architectures: what lab/prepare, lab/run and lab/lib.sh need of each architecture."""

import subprocess
import unittest

from loaded import CHECKOUT

ARCHITECTURES = sorted((CHECKOUT / "lab/architectures").glob("*.sh"))
VARIABLES = ["emulator", "emulator_package", "libraries", "loader", "run_program", "cross_root", "compiler", "guest_template",
             "guest_variants", "emulated_machine"]
FUNCTIONS = ["build_directory", "kernel_options", "open_kvm"]


class Architectures(unittest.TestCase):
    def run_bash(self, architecture, text):
        return subprocess.run(["bash", "-euc", f'source "{architecture}"\n{text}'], stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    def test_each_has_all_that_differs(self):
        self.assertEqual(["amd64", "arm64"], [file.stem for file in ARCHITECTURES])
        for file in ARCHITECTURES:
            with self.subTest(file.stem):
                self.run_bash(file, f"declare -p {' '.join(VARIABLES)}\ndeclare -F {' '.join(FUNCTIONS)}")

    def test_the_template_of_the_guest_names_the_emulator(self):
        for file in ARCHITECTURES:
            with self.subTest(file.stem):
                template, emulator = self.run_bash(file, 'echo "$guest_template $emulator"').split()
                self.assertIn(f"<emulator>/usr/bin/{emulator}</emulator>", (CHECKOUT / "lab/config" / template).read_text(encoding="utf-8"))

    def test_the_packages_for_arm64_are_those_for_amd64_without_its_own(self):
        lines = self.run_bash(CHECKOUT / "lab/architectures/arm64.sh", f'host_packages "{CHECKOUT}/lab/image/packages"').splitlines()
        self.assertIn("qemu-system-arm", lines)
        self.assertIn("libvirt-daemon-system", lines)
        self.assertFalse({"qemu-system-x86", "ovmf"} & set(lines))


class Usage(unittest.TestCase):
    def refusal(self, *command):
        done = subprocess.run([CHECKOUT / "lab" / command[0], *command[1:]], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(2, done.returncode)
        return done.stderr

    def test_an_unknown_architecture_is_refused(self):
        self.assertIn("unknown architecture mips", self.refusal("run", "--architecture", "mips", CHECKOUT / "lab/selftest.sh"))
        self.assertIn("unknown option --architecture mips", self.refusal("prepare", "--architecture", "mips"))

    def test_another_architecture_has_only_this_release(self):
        self.assertIn("cannot be combined", self.refusal("prepare", "--architecture", "arm64", "--daemons", "modular"))
        self.assertIn("only this machine's release",
                      self.refusal("run", "--architecture", "arm64", "--release", "other", CHECKOUT / "lab/selftest.sh"))


if __name__ == "__main__":
    unittest.main(argv=["lab_architectures_test"])
