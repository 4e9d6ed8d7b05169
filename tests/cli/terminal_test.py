"""terminal_test.py VFPASS: sessions of a user in a real terminal (tmux): pager, --watch, progress, colours and completion, as the screen
shows them."""

import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

VFPASS = Path(sys.argv.pop(1)).resolve()
SOURCE = Path(__file__).resolve().parents[2]
PATIENCE = 60
# `vfpass complete` ends after 2 s, without all candidates on a busy machine.
PATIENCE_FOR_COMPLETION = 10
ATTEMPTS = 3
VF = "0000:0c:00.2"
NODE = """<node>
  <domain type='test'>
    <name>train0</name>
    <uuid>0f5e9a3c-1111-4222-8333-944455566677</uuid>
    <memory unit='GiB'>64</memory>
    <vcpu>4</vcpu>
    <cpu mode='host-passthrough'/>
    <os firmware='efi'><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>
    <devices><controller type='pci' index='0' model='pcie-root'/></devices>
    <test:runstate xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>5</test:runstate>
  </domain>
</node>
"""
MAPPING = """version: 1
vm: train0
domain-settings: apply
nvlink: disabled
gpus:
  - {name: gpu0, pci: "0000:0f:00.0"}
  - {name: gpu4, pci: "0000:89:00.0"}
"""
# The exit status of the last command, and a mark that no output has.
PROMPT = r"\[(\d+)\] %"
SHELL = f"""PS1='[$?] % ' PS2= HISTFILE=
bind 'set bell-style none'
source {SOURCE}/completion/vfpass.bash
"""


def without_blanks(text):
    """Lines wrap at any character, and tmux leaves out blanks at their ends."""
    return re.sub(r"\s", "", text)


class Terminal(unittest.TestCase):
    WIDTH, HEIGHT = 110, 24

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(self.remove_folder)
        (self.folder / "config/vms").mkdir(parents=True, mode=0o755)
        (self.folder / "config/vms/train0.yaml").write_text(MAPPING)
        (self.folder / "node.xml").write_text(NODE)
        (self.folder / "shell").write_text(SHELL)
        subprocess.run([SOURCE / "tests/hosts/make_host.py", "h100-8", self.folder / "host"], check=True)
        self.start()

    def remove_folder(self):
        """Programs that the end of tmux has ended may still write."""
        deadline = time.monotonic() + PATIENCE
        while self.folder.exists():
            shutil.rmtree(self.folder, ignore_errors=time.monotonic() < deadline)

    def start(self):
        # Without the caller's pager, colours and variables of sudo.
        environment = {"PATH": f"{VFPASS.parent}:/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "SHELL": "/bin/bash",
                       "LIBVIRT_DEFAULT_URI": f"test://{self.folder}/node.xml"}
        subprocess.run(["tmux", "-u", "-S", self.folder / "tmux", "-f", "/dev/null", "new-session", "-d", "-s", "test",
                        "-x", str(self.WIDTH), "-y", str(self.HEIGHT), "bash", "--rcfile", str(self.folder / "shell"), "-i"],
                       env=environment, cwd=self.folder, check=True)
        self.addCleanup(self.tmux, "kill-server")
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("resize-window", "-t", "test", "-x", str(self.WIDTH), "-y", str(self.HEIGHT))
        self.prompt()

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.folder / "tmux", *words], stdout=subprocess.PIPE, text=True, check=True).stdout

    def keys(self, text):
        self.tmux("send-keys", "-t", "test", "-l", "--", text)

    def key(self, name):
        self.tmux("send-keys", "-t", "test", name)

    def enter(self, line):
        """Runs a command on an empty screen without history."""
        self.tmux("send-keys", "-t", "test", "C-l")
        self.until(lambda text: re.fullmatch(PROMPT, text.strip()), "an empty screen")
        self.tmux("clear-history", "-t", "test")
        self.keys(line)
        # Until the line is there, the prompt before it could be taken for the one after it.
        self.until(lambda text: without_blanks(text).endswith(without_blanks(line)), "the typed line")
        self.key("Enter")

    def screen(self, *options):
        return self.tmux("capture-pane", "-t", "test", "-p", *options)

    def transcript(self):
        """What has scrolled off the screen, too."""
        return self.screen("-S", "-")

    def until(self, accepts, expected, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while not accepts(text := self.screen()):
            self.assertLess(time.monotonic(), deadline, f"expected {expected}, the screen shows:\n{text}")
            time.sleep(0.02)
        return text

    def press_until(self, key, accepts, expected):
        """Presses again each second: less can lose what is typed while it handles a signal."""
        pressed = 0

        def accepts_or_press(text):
            nonlocal pressed
            if not accepts(text) and time.monotonic() - pressed >= 1:
                self.keys(key)
                pressed = time.monotonic()
            return accepts(text)

        self.until(accepts_or_press, expected)

    def until_shows(self, pattern, patience=PATIENCE):
        return self.until(lambda text: re.search(pattern, text, re.M), pattern, patience)

    def prompt(self):
        """Waits until the shell reads the next line, and returns the exit status of the last one."""
        text = self.until(lambda text: re.fullmatch(PROMPT, text.rstrip().rpartition("\n")[2]), "a prompt")
        return int(re.fullmatch(PROMPT, text.rstrip().rpartition("\n")[2])[1])

    def modes(self):
        """The terminal's modes as a program sees them, and those that tmux knows of."""
        self.enter("stty -g >modes.new; mv modes.new modes")
        self.prompt()
        return (self.folder / "modes").read_text(), self.tmux("display-message", "-p", "-t", "test",
                                                              "#{cursor_flag} #{alternate_on} #{wrap_flag} #{keypad_flag}")

    def command(self, words):
        return f"vfpass --sysroot host --config-dir config --state-dir state --run-dir run {words}"


class Pager(Terminal):
    def test_shows_a_long_plan_until_q(self):
        before = self.modes()
        self.enter(self.command("plan train0"))
        text = self.until(lambda text: text.rstrip().endswith("\n:"), "a pager that waits")
        self.assertIn("attach train0: ", text)
        self.assertNotIn("commands that apply", text)
        self.key("Space")
        self.until(lambda later: later.rstrip().endswith("\n:") and "attach train0: 5 steps" not in later, "the second page")
        self.keys("q")
        self.assertEqual(self.prompt(), 3)
        self.assertEqual(self.modes(), before)

    def test_search_in_the_pager(self):
        self.enter(self.command("plan train0"))
        self.until(lambda text: text.rstrip().endswith("\n:"), "a pager that waits")
        self.keys("/pcie-expander-bus")
        self.key("Enter")
        self.until(lambda text: "pcie-expander-bus" in text.split("\n")[0], "the place that was searched for")
        self.keys("q")
        self.assertEqual(self.prompt(), 3)

    def test_does_not_stop_at_a_text_that_fits(self):
        self.tmux("resize-window", "-t", "test", "-x", str(self.WIDTH), "-y", "250")
        self.enter(self.command("plan train0"))
        self.assertEqual(self.prompt(), 3)
        self.assertIn("attach train0: 5 steps", self.screen())

    def test_does_not_stop_without_a_pager(self):
        for line in (self.command("plan train0") + " --no-pager", "VFPASS_PAGER= " + self.command("plan train0"),
                     "PAGER=cat " + self.command("plan train0"), "TERM=dumb " + self.command("plan train0"),
                     self.command("plan train0") + " >plan.txt", self.command("plan train0") + " | cat; (exit ${PIPESTATUS[0]})"):
            with self.subTest(line=line):
                self.enter(line)
                self.assertEqual(self.prompt(), 3)
                self.assertEqual("attach train0: 5 steps" in self.transcript(), ">plan.txt" not in line)

    def test_ends_with_the_pager(self):
        """Ctrl-C belongs to less while it shows the text: it does not end there, and q does."""
        self.enter(self.command("plan train0"))
        self.until(lambda text: text.rstrip().endswith("\n:"), "a pager that waits")
        self.key("C-c")
        self.press_until(" ", lambda later: later.rstrip().endswith("\n:") and "attach train0: 5 steps" not in later, "a later page")
        self.keys("q")
        self.assertEqual(self.prompt(), 3)


class Watch(Terminal):
    def check(self, command, changed):
        """The screen has one copy of the text, with `changed` once the host has changed."""
        before = self.modes()
        self.enter(f"{command} --watch=1")
        text = self.until_shows(r"\Aevery 1 s, \S+ \S+ UTC; Ctrl-C ends it\n\n")
        self.assertNotRegex(text, changed)
        first = text.split("\n")[0]
        self.until(lambda text: text.startswith("every 1 s, ") and text.split("\n")[0] != first, "another time")
        (self.folder / "host/sys/bus/pci/devices" / VF / "driver").unlink()
        (self.folder / "config/vms/train1.yaml").write_text(MAPPING.replace("train0", "train1"))
        text = self.until_shows(changed)
        self.assertEqual(len(re.findall("Ctrl-C ends it", text)), 1, text)
        self.assertLessEqual(len(text.rstrip().split("\n")), self.HEIGHT)
        self.key("C-c")
        self.assertEqual(self.prompt(), 130)
        self.assertEqual(self.modes(), before)

    def test_vf_list(self):
        self.check(self.command("vf list --pf 0000:0c:00.0"), rf"^0000:0c:00.0 +0 +{re.escape(VF)} +- ")

    def test_status(self):
        # Not possible on a captured tree.
        self.check("vfpass --config-dir config --state-dir state --run-dir run status", "^note: VM train1: has a mapping")

    def test_lines_that_do_not_fit(self):
        self.tmux("resize-window", "-t", "test", "-x", str(self.WIDTH), "-y", "10")
        self.enter(self.command("vf list --watch=1"))
        text = self.until_shows(r"^\(\d+ more lines\)$")
        self.assertTrue(text.startswith("every 1 s, "), text)
        self.key("C-c")
        self.assertEqual(self.prompt(), 130)


class Progress(Terminal):
    PATTERN = r"^check [a-z0-9-]+, \d+ s$"

    def silent_libvirt(self):
        """Accepts a connection and does not answer."""
        (self.folder / "libvirt").unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(str(self.folder / "libvirt"))
        listening.listen(8)
        return listening

    def check_waiting_for_libvirt(self, command):
        listening = self.silent_libvirt()
        self.enter(f"vfpass --no-pager --connect 'qemu+unix:///system?socket={self.folder}/libvirt' {command}")
        self.until_shows(self.PATTERN)
        self.until_shows(r"^check [a-z0-9-]+, [1-9]\d* s$")
        listening.close()
        self.prompt()
        self.assertNotRegex(self.transcript(), self.PATTERN)

    def test_appears_while_doctor_waits_and_is_erased(self):
        self.check_waiting_for_libvirt("doctor")

    def test_appears_while_snapshot_waits_and_is_erased(self):
        self.check_waiting_for_libvirt("snapshot captured")

    def test_appears_while_snapshot_reads_and_writes(self):
        """One system call takes three seconds; the others go on."""
        for call, line in (("getdents64", "reading the devices"), ("mkdirat", "writing captured")):
            with self.subTest(line=line):
                shutil.rmtree(self.folder / "captured", ignore_errors=True)
                slow = f"strace -f -qq -o trace --inject={call}:delay_enter=3000000:when=1"
                self.enter(f"{slow} {self.command('snapshot captured')}")
                self.until_shows(rf"^{line}, [1-9] s$")
                self.assertEqual(self.prompt(), 0)
                self.assertNotIn(line, self.transcript())

    def test_appears_while_a_command_waits_for_libvirt_and_is_erased(self):
        """In a file there is no such line, although that command waits as long."""
        line = r"^waiting for libvirt, [1-9]\d* s$"
        commands = ["status", "plan train0", "check train0"]
        if os.geteuid() == 0:
            commands += ["attach train0", "detach train0", "gc", "recover", "guest-setup train0", "verify train0"]
        connect = f"--connect 'qemu+unix:///system?socket={self.folder}/libvirt'"
        options = f"--no-pager --config-dir config --state-dir state --run-dir run {connect}"
        for command in commands:
            with self.subTest(command=command):
                listening = self.silent_libvirt()
                self.enter(f"vfpass {options} {command} </dev/null >output.txt 2>errors.txt & vfpass {options} {command}; wait; (exit 7)")
                self.until_shows(line)
                listening.close()
                self.until_shows(r"^\[7\] % *$")
                self.assertNotRegex(self.transcript(), line)
                errors = (self.folder / "errors.txt").read_text()
                self.assertNotIn("waiting for", errors)
                self.assertIn("libvirt", errors)

    def test_names_the_holder_of_a_lock(self):
        if os.geteuid() != 0:
            self.skipTest("only root can apply host.yaml")
        (self.folder / "run").mkdir(mode=0o700)
        (self.folder / "config/host.yaml").write_text("version: 1\n")
        with open(os.open(self.folder / "run/soft-roce.lock", os.O_RDWR | os.O_CREAT, 0o600), "w") as lock:
            lock.write(f"{os.getpid()} vfpass host apply\n")
            lock.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
            line = rf"^waiting for the lock of the SoftRoCE links, held by process {os.getpid()} \(vfpass host apply\)"
            options = "--config-dir config --state-dir state --run-dir run"
            self.enter(f"vfpass {options} host apply --only soft-roce")
            self.until_shows(line)
            self.until_shows(r", [1-9]\d* s$")
        self.prompt()
        self.assertNotRegex(self.transcript(), line)

    def test_does_not_appear_with_quiet_or_in_a_file(self):
        for suffix in ("--quiet doctor", "doctor 2>errors.txt"):
            self.enter(self.command(f"--no-pager {suffix}"))
            self.prompt()
            self.assertNotRegex(self.transcript(), self.PATTERN)
        self.assertNotIn("check ", (self.folder / "errors.txt").read_text())


class Colours(Terminal):
    COLOUR = re.compile(r"\x1b\[(?:\d+;)*3[1-6]m")

    def shown(self, line):
        self.enter(line)
        self.prompt()
        return self.screen("-e", "-S", "-")

    def test_on_a_terminal(self):
        self.assertRegex(self.shown(self.command("doctor --no-pager")), self.COLOUR)

    def test_in_the_pager(self):
        self.enter(self.command("doctor --all"))
        self.until(lambda text: text.rstrip().endswith("\n:"), "a pager that waits")
        text = self.screen("-e")
        self.assertRegex(text, self.COLOUR)
        self.assertNotIn("ESC[", text)
        self.keys("q")
        self.assertEqual(self.prompt(), 0)

    def test_none_elsewhere(self):
        for line in ("NO_COLOR=1 " + self.command("doctor --no-pager"), self.command("doctor --color never --no-pager"),
                     self.command("doctor") + " | cat"):
            with self.subTest(line=line):
                self.assertNotRegex(self.shown(line), self.COLOUR)

    def test_forced(self):
        self.assertRegex(self.shown(self.command("doctor --color always") + " | cat"), self.COLOUR)


class Completion(Terminal):
    def check(self, typed, tabs, pattern):
        """What follows from the keys, on a busy machine perhaps only at a later attempt."""
        for attempt in range(1, ATTEMPTS + 1):
            self.enter("true")
            self.prompt()
            self.keys(typed)
            for _ in range(tabs):
                self.key("Tab")
            try:
                self.until_shows(pattern, PATIENCE_FOR_COMPLETION)
                break
            except AssertionError:
                if attempt == ATTEMPTS:
                    raise
            finally:
                self.key("C-u")

    def test_commands_names_options_and_values(self):
        for typed, completed in (("vfpass att", "vfpass attach"), ("vfpass host ap", "vfpass host apply"),
                                 ("vfpass attach tr", "vfpass attach train0"), ("vfpass plan train0 --no-x", "vfpass plan train0 --no-xml"),
                                 ("vfpass detach train0 --ke", "vfpass detach train0 --keep"),
                                 ("vfpass topo --format tr", "vfpass topo --format tree"),
                                 ("vfpass topo --sysroot ho", "vfpass topo --sysroot host/")):
            with self.subTest(typed=typed):
                self.check(typed, 1, f"% {completed}$")

    def test_lists_several(self):
        self.check("vfpass d", 2, "^detach +diagnose +doctor *$")


if __name__ == "__main__":
    if not shutil.which("tmux"):
        sys.exit("terminal_test.py: tmux is not installed: run scripts/install-packages")
    unittest.main()
