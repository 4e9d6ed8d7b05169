"""watch_test.py VFPASS: --watch prints what has changed, and ends by a signal or when nobody reads it."""

import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

VFPASS = str(Path(sys.argv.pop(1)).resolve())
HOSTS = Path(__file__).resolve().parents[1] / "hosts"
VF = "0000:0c:00.2"


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        subprocess.run([HOSTS / "make_host.py", "h100-8", self.folder / "host"], check=True)
        self.command = [VFPASS, "--sysroot", self.folder / "host", "vf", "list", "--watch=1"]

    def start(self, *options, kind="xterm", **streams):
        program = subprocess.Popen([*self.command, *options], env={**os.environ, "TERM": kind, "LC_ALL": "C.UTF-8"},
                                   start_new_session=True, **streams)
        self.addCleanup(lambda: program.poll() is None and program.kill())
        return program

    def change(self):
        """The VF loses its driver."""
        (self.folder / "host" / "sys/bus/pci/devices" / VF / "driver").unlink()

    def read_until(self, file, text, times=1):
        seen = b""
        while seen.count(text) < times:
            self.assertTrue(select.select([file], [], [], 60)[0], seen)
            part = os.read(file, 65536)
            self.assertTrue(part, seen)
            seen += part
        return seen.decode()

    def end(self, program):
        program.send_signal(signal.SIGINT)
        self.assertEqual(program.wait(60), -signal.SIGINT)

    def test_prints_each_change_once(self):
        program = self.start(stdout=subprocess.PIPE)
        first = self.read_until(program.stdout.fileno(), b"\n\n")
        self.assertRegex(first, r"\A\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\nPF +INDEX ")
        self.change()
        second = self.read_until(program.stdout.fileno(), b"\n\n")
        self.assertEqual(second.count(" UTC\n"), 1, second)
        lines = [dict(zip(text.split("\n")[1].split(), text.split("\n")[2].split())) for text in (first, second)]
        self.assertEqual([line["DRIVER"] for line in lines], ["mlx5_core", "-"])
        self.end(program)
        self.assertEqual(program.stdout.read(), b"")
        program.stdout.close()

    def test_prints_documents(self):
        program = self.start("--json", stdout=subprocess.PIPE)
        first = json.loads(self.read_until(program.stdout.fileno(), b"\n}\n"))
        self.change()
        second = json.loads(self.read_until(program.stdout.fileno(), b"\n}\n"))
        drivers = [next(vf["driver"] for vf in each["vfs"] if vf["address"] == VF) for each in (first, second)]
        self.assertEqual(drivers, ["mlx5_core", None])
        self.end(program)
        program.stdout.close()

    def test_replaces_the_text_on_a_terminal(self):
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        program = self.start(stdin=end, stdout=end, stderr=end)
        os.close(end)
        text = self.read_until(terminal, b"\x1b[H\x1b[2J", 3)
        self.assertIn("every 1 s, ", text)
        self.assertIn(VF, text)
        self.end(program)

    def test_writes_no_control_sequences_on_a_dumb_terminal(self):
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        program = self.start(stdin=end, stdout=end, stderr=end, kind="dumb")
        os.close(end)
        first = self.read_until(terminal, b"\n\r\n")
        self.change()
        self.assertNotIn("\x1b", first + self.read_until(terminal, b"\n\r\n"))
        self.end(program)

    def test_connects_once_to_a_libvirt_that_does_not_answer(self):
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(str(self.folder / "libvirt"))
        server.listen()
        connections = []

        def accept():
            try:
                while True:
                    connections.append(server.accept()[0])
            except OSError:
                pass
        threading.Thread(target=accept, daemon=True).start()
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        program = self.start("--connect", f"qemu+unix:///system?socket={self.folder / 'libvirt'}", stdin=end, stdout=end, stderr=end)
        os.close(end)
        text = self.read_until(terminal, b"\x1b[H\x1b[2J", 4)
        self.assertGreaterEqual(text.count("libvirt did not answer"), 3)
        self.assertEqual(len(connections), 1)
        self.end(program)
        for connection in connections:
            connection.close()

    def test_ends_when_nobody_reads(self):
        program = self.start(stdout=subprocess.PIPE)
        self.read_until(program.stdout.fileno(), b"\n\n")
        program.stdout.close()
        self.assertEqual(program.wait(60), 0)

    def test_shows_a_later_failure_and_continues(self):
        program = self.start(stdout=subprocess.PIPE)
        self.read_until(program.stdout.fileno(), b"\n\n")
        devices = self.folder / "host/sys/bus/pci/devices"
        devices.rename(devices.parent / "away")
        self.assertIn("vfpass: ", self.read_until(program.stdout.fileno(), b"\n\n"))
        (devices.parent / "away").rename(devices)
        self.assertIn(VF, self.read_until(program.stdout.fileno(), b"\n\n"))
        self.end(program)
        program.stdout.close()

    def test_refuses_other_times(self):
        for value in ("0", "3601", "x", "-1", "1.5"):
            result = subprocess.run([*self.command[:-1], f"--watch={value}"], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2, value)
            self.assertIn(f"--watch={value}: not a number of seconds", result.stderr)
        result = subprocess.run([*self.command[:2], "/nonexistent", *self.command[3:]], capture_output=True, text=True, check=False)
        self.assertNotEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main()
