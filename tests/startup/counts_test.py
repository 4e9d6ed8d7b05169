"""counts_test.py BUILD CHECKOUT: the processes that small commands start, the files that they open for each PCI function, and
how often they parse the XML of a domain. strace counts the system calls, and callgrind the calls of functions."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1))
CHECKOUT = Path(sys.argv.pop(1))
VFPASS = BUILD / "sbin/vfpass"
HOOK = BUILD / "sbin/vfpass-qemu-hook"


class Counts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = Path(cls.folder.name)
        for host in ("functions-64", "functions-256"):
            subprocess.run([CHECKOUT / "tests/hosts/make_host.py", host, cls.work / host], check=True,
                           stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def traced(self, calls, *command, stdin=""):
        """The lines of strace for these system calls of the command and of all its threads and processes."""
        log = self.work / "strace"
        subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", f"trace={calls}", *map(str, command)], check=False, text=True,
                       input=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return log.read_text(encoding="utf-8", errors="replace").splitlines()

    def processes(self, *command, stdin=""):
        """How many processes the command starts, and how many programs run. A thread is not a process."""
        lines = self.traced("clone,clone3,fork,vfork,execve", *command, stdin=stdin)
        started = [line for line in lines if re.search(r" (clone3?|v?fork)\(", line) and "CLONE_THREAD" not in line]
        return len(started), sum(" execve(" in line for line in lines)

    def on(self, host, *command):
        return [VFPASS, "--sysroot", self.work / host, "--state-dir", self.work, "--config-dir", self.work, *command]

    def test_commands_that_read_the_host_start_no_process(self):
        commands = [[VFPASS, "--version"], [VFPASS, "--help"], [VFPASS, "attac"]]
        commands += [self.on("functions-64", *words) for words in (["topo"], ["topo", "--json"], ["pf", "list"], ["vf", "list"])]
        for command in commands:
            with self.subTest(command=command[1:]):
                self.assertEqual(self.processes(*command), (0, 1))

    def test_hook_of_an_unmanaged_domain_starts_no_process(self):
        domain = "<domain type='kvm'><name>web0</name><devices/></domain>"
        self.assertEqual(self.processes(HOOK, "web0", "prepare", "begin", "-", stdin=domain), (0, 1))

    def test_strace_counts_processes(self):
        self.assertEqual(self.processes("/bin/sh", "-c", "/bin/true; /bin/true; exit 0"), (2, 3))

    def opens(self, host, *command):
        # A second line about a call that another thread interrupted has no parenthesis.
        return sum(bool(re.search(r" openat2?\(", line)) for line in self.traced("openat,openat2", *self.on(host, *command)))

    def test_files_opened_for_each_pci_function_are_few(self):
        # The difference leaves out what a command opens once. `vf list` reads most of each VF; of a VF, `pf list` reads only the
        # link to it, and tries one file of each function. The file `enable` shows whether a process uses a function through VFIO. Tenths
        # are files of PFs, one for 32 functions.
        for command, most in ((["topo"], 3.1), (["topo", "--json"], 3.1), (["doctor"], 5.1), (["pf", "list"], 5.1), (["vf", "list"], 7.1),
                              (["vf", "list", "--json"], 12)):
            with self.subTest(command=command):
                more = self.opens("functions-256", *command) - self.opens("functions-64", *command)
                self.assertGreater(more / (256 - 64), 1, "otherwise strace saw nothing")
                self.assertLessEqual(more / (256 - 64), most)

    def parsed_documents(self, domains):
        """How many XML documents `status` parses if libvirt's test driver has that many running domains."""
        node = self.work / "node.xml"
        domain = "<domain type='test'><name>d{}</name><memory>1024</memory><os><type arch='i686'>hvm</type></os></domain>"
        node.write_text("<node>" + "".join(domain.format(number) for number in range(domains)) + "</node>", encoding="utf-8")
        log = self.work / "callgrind"
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={log}", VFPASS, "--connect", f"test://{node}",
                        "--state-dir", self.work, "status"], check=True, capture_output=True)
        names, called, count = {}, "", 0
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            if match := re.match(r"c?fn=\((\d+)\)(?: (.*))?", line):
                names.setdefault(match[1], match[2])
                called = names[match[1]] if line.startswith("cfn") else ""
            elif line.startswith("calls=") and called.startswith("pugi::xml_document::load_buffer("):
                count += int(line[len("calls="):].split()[0])
        return count

    def test_each_xml_of_a_domain_is_parsed_once(self):
        # A running domain has two, the persistent and the live one.
        self.assertEqual(self.parsed_documents(21) - self.parsed_documents(1), 2 * 20)


if __name__ == "__main__":
    unittest.main()
