"""lab/outside/machine.sh: the core that a lab keeps to."""

import os
import subprocess
import tempfile
import unittest

from loaded import CHECKOUT

MACHINE = CHECKOUT / "lab/outside/machine.sh"
TWO_CORES = "allowed_cores() { printf '3\\n5\\n'; }"


class Cores(unittest.TestCase):
    def run_bash(self, text):
        """The lines that TEXT prints after machine.sh was sourced; its locks are in a folder of their own."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["bash", "-euc", f'source "{MACHINE}"\n{text}'], env=dict(os.environ, TMPDIR=folder),
                                  stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.split()

    def test_the_allowed_cores_are_those_of_the_process(self):
        self.assertEqual(os.sched_getaffinity(0), {int(core) for core in self.run_bash("allowed_cores")})

    def test_two_labs_have_different_cores(self):
        lines = self.run_bash(f"{TWO_CORES}\nchoose_core\necho $core\nchoose_core\necho $core")
        self.assertEqual(["3", "5"], sorted(lines))

    def test_further_labs_are_spread_over_the_cores(self):
        lines = self.run_bash(f"{TWO_CORES}\nfor lab in 1 2 3 4; do choose_core; echo $core; done")
        self.assertEqual(["3", "3", "5", "5"], sorted(lines))

    def test_a_core_is_free_again_when_its_lab_ends(self):
        lines = self.run_bash(f"{TWO_CORES}\n(choose_core)\n(choose_core)\nchoose_core\nfirst=$core\nchoose_core\n"
                              "[ $first != $core ] && echo different")
        self.assertEqual(["different"], lines)

    def test_all_cores_on_request(self):
        lines = self.run_bash(f"{TWO_CORES}\ncores=all\nchoose_core\necho $core")
        self.assertIn(lines, (["3,5"], ["5,3"]))

    def test_a_machine_has_one_processor_for_its_core(self):
        text = ("host_number() { echo 1; }\nkernel_options() { :; }\nall_shares() { :; }\nlink_arguments() { :; }\n"
                "emulated_machine=() work=/w build=/b memory=1 lab=$PWD machine=none\nmkdir machines\n: >machines/none\n"
                "machine_arguments\nprintf '%s\\n' \"${arguments[@]}\"")
        for cores, processors in (("one", "1"), ("all", "2")):
            lines = self.run_bash(f'cd "$TMPDIR"\ncores={cores}\n{text}')
            self.assertEqual(processors, lines[lines.index("-smp") + 1])


if __name__ == "__main__":
    unittest.main(argv=["lab_cores_test"])
