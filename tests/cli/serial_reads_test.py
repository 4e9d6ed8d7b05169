"""serial_reads_test.py VFPASS: which cards' serial numbers each command reads (docs/performance.md).

On a card, reading one takes tenths of a second. inotify(7) reports each file `vpd` that a command opens.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

VFPASS = str(Path(sys.argv.pop(1)).resolve())
MAKE_HOST = Path(__file__).resolve().parent.parent / "hosts" / "make_host.py"
IN_OPEN = 0x20
EVENT_HEADER = 16  # struct inotify_event without a name
NODE = """
    <node><domain type='test'>
      <name>train0</name><uuid>0f5e9a3c-1111-4222-8333-944455566677</uuid>
      <memory unit='MiB'>1024</memory><vcpu>2</vcpu>
      <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>
      <devices><controller type='pci' index='0' model='pcie-root'/></devices>
    </domain></node>"""


class SerialReads(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.host = self.folder / "host"
        subprocess.run([MAKE_HOST, "h100-8", self.host], check=True)
        (self.folder / "config" / "vms").mkdir(parents=True, mode=0o755)
        (self.folder / "node.xml").write_text(textwrap.dedent(NODE))
        self.serials = {path: path.parent.name for path in self.host.glob("sys/devices/**/vpd")}
        self.pfs = {name for name in self.serials.values()
                    if (self.host / "sys/bus/pci/devices" / name / "sriov_totalvfs").exists()}
        self.assertGreater(len(self.pfs), 4)

    def mapping(self, selector):
        (self.folder / "config" / "vms" / "train0.yaml").write_text(
            f"version: 1\nvm: train0\nvfs:\n  - {{name: rail0, pf: {{{selector}}}}}\n")

    def read_by(self, *command):
        """The PFs whose serial numbers the command reads."""
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.addCleanup(os.close, descriptor)
        watches = {libc.inotify_add_watch(descriptor, bytes(path), IN_OPEN): name for path, name in self.serials.items()}
        self.assertNotIn(-1, watches)
        result = subprocess.run(
            [VFPASS, "--sysroot", self.host, "--config-dir", self.folder / "config", "--state-dir", self.folder / "state",
             "--run-dir", self.folder / "run", "--connect", f"test://{self.folder}/node.xml", *command],
            capture_output=True, text=True, check=False)
        self.assertIn(result.returncode, (0, 1, 3), result.stderr)
        opened = set()
        try:
            events = os.read(descriptor, 1 << 20)
        except BlockingIOError:
            events = b""
        for at in range(0, len(events), EVENT_HEADER):
            opened.add(watches[int.from_bytes(events[at:at + 4], sys.byteorder)])
        return opened & self.pfs

    def test_lists(self):
        self.assertEqual(self.read_by("pf", "list"), self.pfs)
        self.assertEqual(self.read_by("vf", "list"), set())
        self.assertEqual(self.read_by("vf", "list", "--json"), set())
        self.assertEqual(self.read_by("vf", "list", "--pf", "0000:0c:00.0"), self.pfs)

    def test_plan_reads_those_that_it_records(self):
        self.mapping('pci: "0000:0c:00.0"')
        self.assertEqual(self.read_by("plan", "train0"), {"0000:0c:00.0"})

    def test_selector_by_serial_needs_all(self):
        function = self.host / "sys/bus/pci/devices/0000:0c:00.0"
        serial = (function / "vpd").read_bytes().split(b"SN", 1)[1]
        self.mapping(f"serial: {serial[1:1 + serial[0]].decode()}, function: 0")
        self.assertEqual(self.read_by("plan", "train0"), self.pfs)


if __name__ == "__main__":
    unittest.main()
