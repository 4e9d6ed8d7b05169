"""journal_test.py BUILD CHECKOUT: what the built programs write to the systemd journal, and what `vfpass history` reads. The test has
a mount namespace with its own /run and a real systemd-journald in it, so it needs root."""

import ctypes
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1))
CHECKOUT = Path(sys.argv.pop(1))
VFPASS = BUILD / "sbin/vfpass"
HOOK = BUILD / "sbin/vfpass-qemu-hook"
JOURNALD = "/lib/systemd/systemd-journald"
SOCKET = Path("/run/systemd/journal/socket")
UUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
REFUSED_START = "50e06797e5b24477bbb522ff4c4266be"
FAILED_HOST_APPLY = "318d2f40ed06439e8e85b1081a44ed28"
# Our metadata, but damaged: the hook refuses the start before it opens anything.
DOMAIN = f"""<domain xmlns:v='https://vfpass.org/xmlns/domain/1'><name>x</name><uuid>{UUID}</uuid>
<metadata><v:domain/></metadata></domain>"""


def enter_namespace():
    """A mount namespace in which /run is empty. Threads and processes of the machine do not see it."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts = 0x00020000
    if libc.unshare(new_mounts) != 0:
        return False
    empty = [Path("/run")] + [path for path in (Path("/var/log/journal"),) if path.exists()]
    commands = [["mount", "--make-rprivate", "/"]] + [["mount", "-t", "tmpfs", "tmpfs", path] for path in empty]
    return all(subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0 for command in commands)


def fields_of(datagram):
    """The fields of an entry in which each value is preceded by its length."""
    fields = {}
    while datagram:
        name, datagram = datagram.split(b"\n", 1)
        length = int.from_bytes(datagram[:8], "little")
        fields.setdefault(name.decode(), []).append(datagram[8:8 + length])
        datagram = datagram[8 + length + 1:]
    return fields


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        (self.work / "host.yaml").write_text("version: 1\npfs: [{pf: {pci: '0fff:ff:1f.0'}, virtual-function-count: 2}]\n", encoding="utf-8")
        SOCKET.parent.mkdir(parents=True, exist_ok=True)

    def hook(self, name):
        return subprocess.run([HOOK, name, "prepare", "begin", "-"], input=DOMAIN, text=True, capture_output=True, check=False)

    def vfpass(self, *words, **environment):
        places = ["--config-dir", self.work, "--state-dir", self.work / "state", "--run-dir", self.work / "run"]
        return subprocess.run([VFPASS, *places, *words], text=True, capture_output=True, check=False,
                              env={"PATH": "/usr/bin:/usr/sbin", **environment})


class WithSocketOfTheTest(Programs):
    def setUp(self):
        super().setUp()
        self.receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.receiver.bind(str(SOCKET))
        self.receiver.settimeout(10)
        self.addCleanup(SOCKET.unlink)
        self.addCleanup(self.receiver.close)

    def received(self):
        return fields_of(self.receiver.recv(1 << 18))

    def test_hook_sends_one_entry_with_all_fields(self):
        name = "train0\nVFPASS_USER=root"
        self.assertEqual(self.hook(name).returncode, 1)
        fields = self.received()
        self.assertEqual(fields.pop("MESSAGE"), [b"cannot read the vfpass metadata in the domain XML: attribute version of "
                                                 b"<v:domain> is missing"])
        self.assertIn(b"vfpass attach", fields.pop("VFPASS_REMEDY")[0])
        self.assertEqual(fields, {"PRIORITY": [b"3"], "SYSLOG_IDENTIFIER": [b"vfpass-qemu-hook"],
                                  "MESSAGE_ID": [REFUSED_START.encode()], "VFPASS_RESULT": [b"failed"],
                                  "VFPASS_OPERATION": [b"prepare"], "VFPASS_VM": [name.encode()],
                                  "VFPASS_VM_UUID": [UUID.encode()]})

    def test_command_names_the_user_of_sudo(self):
        self.vfpass("host", "apply", SUDO_UID="0")
        login = Path("/proc/self/loginuid").read_text(encoding="ascii") if Path("/proc/self/loginuid").exists() else "4294967295"
        fields = self.received()
        self.assertEqual(fields["MESSAGE_ID"], [FAILED_HOST_APPLY.encode()])
        self.assertEqual(fields["VFPASS_USER_ID"], [b"0" if login == "4294967295" else login.encode()])
        self.assertNotIn("VFPASS_VM", fields)

    def test_release_from_quarantine_is_recorded(self):
        device = "0000:3b:00.2"
        self.assertEqual(self.vfpass("quarantine", "release", device).returncode, 2)  # creates the database, and has no entry
        database = sqlite3.connect(self.work / "state/vfpass.db")
        with database:
            database.execute("INSERT INTO quarantine (device, reason, since, identity) VALUES (?, 'a reason', '2026-11-28T12:00:00Z', '')",
                             (device,))
        database.close()
        self.assertEqual(self.vfpass("quarantine", "release", device).returncode, 0)
        fields = self.received()
        self.assertEqual(fields["VFPASS_OPERATION"], [b"quarantine-release"])
        self.assertTrue(fields["MESSAGE"][0].startswith(b"released 0000:3b:00.2: VMs can have it again"), fields)

    def test_gpu_memory_check_is_recorded(self):
        (self.work / "run").mkdir(mode=0o700)
        (self.work / "host.yaml").write_text("version: 1\ngpu-memory-check: true\n", encoding="utf-8")
        self.assertEqual(self.vfpass("host", "apply").returncode, 0)
        fields = self.received()
        self.assertEqual(fields["VFPASS_OPERATION"], [b"host-apply"])
        self.assertIn(b"the memory of GPUs is now checked", fields["MESSAGE"][0])

    def test_dry_runs_send_nothing(self):
        self.vfpass("host", "apply", "--dry-run")
        self.vfpass("host", "show")
        self.receiver.setblocking(False)
        self.assertRaises(BlockingIOError, self.received)


class WithoutJournal(Programs):
    def test_programs_work_as_with_a_journal(self):
        self.assertFalse(SOCKET.exists())
        result = self.hook("train0")
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (1, 1))
        result = self.vfpass("host", "apply")
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 1), result.stderr)
        self.assertIn("is not on this host", result.stderr)

    def test_history_reports_a_missing_journal(self):
        result = self.vfpass("history", "--directory", self.work / "missing")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("vfpass: cannot read the journal: ", result.stderr)


@unittest.skipUnless(os.access(JOURNALD, os.X_OK), "no systemd-journald")
class WithJournald(Programs):
    @classmethod
    def setUpClass(cls):
        configuration = Path("/run/systemd/journald.conf.d/test.conf")
        configuration.parent.mkdir(parents=True)
        # Nothing else than our entries, and all of them.
        configuration.write_text("[Journal]\nReadKMsg=no\nAudit=no\nStorage=volatile\nRateLimitBurst=0\n", encoding="ascii")
        Path("/run/log/journal").mkdir(parents=True)
        Path("/run/systemd/journal").mkdir(parents=True, exist_ok=True)
        cls.journald = subprocess.Popen([JOURNALD], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not SOCKET.exists() and time.monotonic() < end:
            time.sleep(0.02)

    @classmethod
    def tearDownClass(cls):
        cls.journald.terminate()
        cls.journald.wait()
        SOCKET.unlink(missing_ok=True)

    def journal(self, *matches):
        subprocess.run(["journalctl", "--sync"], check=True)
        lines = subprocess.run(["journalctl", "--quiet", "--output=json", *matches], check=True, capture_output=True, text=True)
        return [json.loads(line) for line in lines.stdout.splitlines()]

    def history(self, *words):
        subprocess.run(["journalctl", "--sync"], check=True)
        result = self.vfpass("history", "--json", *words)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)["operations"]

    def test_history_finds_the_refused_start_by_name_and_uuid(self):
        self.hook("train0")
        for vm in ("train0", UUID, UUID.upper()):
            found = self.history(vm)
            self.assertTrue(found, vm)
            self.assertEqual((found[-1]["operation"], found[-1]["result"], found[-1]["vm_uuid"]), ("prepare", "failed", UUID))
        self.assertEqual(self.history("train"), [])

    def test_host_operations_have_no_vm(self):
        self.vfpass("host", "apply")
        found = [each for each in self.history() if each["operation"] == "host-apply"]
        self.assertEqual((found[0]["vm"], found[0]["result"], found[0]["message_id"]), (None, "failed", FAILED_HOST_APPLY))

    def test_name_with_a_newline_is_one_value(self):
        name = "a\nMESSAGE=forged\x1b[2J"
        self.hook(name)
        found = self.history(name)
        self.assertEqual([each["vm"] for each in found], [name])
        self.assertNotIn("forged", found[0]["message"])
        text = self.vfpass("history", name)
        self.assertEqual(len(text.stdout.splitlines()), 2, "the heading and one operation")
        self.assertNotIn("\x1b", text.stdout)

    def test_entries_of_another_user_are_ignored(self):
        forged = f"MESSAGE=forged\nMESSAGE_ID={REFUSED_START}\nVFPASS_VM=forged\nVFPASS_OPERATION=prepare\n_UID=0\n"
        send = "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[1].encode(), sys.argv[2])"
        subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", send, forged, SOCKET], check=True)
        self.assertEqual(len(self.journal("VFPASS_VM=forged")), 1, "otherwise the test proves nothing")
        self.assertEqual(self.history("forged"), [])

    def test_times_limits_and_mistakes(self):
        self.hook("limit0")
        self.hook("limit0")
        self.assertEqual(len(self.history("limit0", "--since", "1 hour ago")), 2)
        self.assertEqual(self.history("limit0", "--since", "tomorrow"), [])
        limited = self.vfpass("history", "limit0", "--limit", "1")
        self.assertEqual(len(limited.stdout.splitlines()), 2)
        self.assertIn("there may be older operations", limited.stderr)
        mistake = self.vfpass("history", "--since", "the day before")
        self.assertEqual(mistake.returncode, 2)
        self.assertIn("does not understand this time", mistake.stderr)

    def test_messages_of_a_service_have_fields(self):
        places = ["--config-dir", self.work / "none", "--state-dir", self.work, "--run-dir", self.work]
        # As systemd starts a service; systemd-cat sets the variable only in later versions.
        service = 'JOURNAL_STREAM=$(stat --dereference --format=%d:%i /proc/self/fd/2) exec "$@"'
        subprocess.run(["systemd-cat", "sh", "-c", service, "sh", VFPASS, *places, "host", "apply"], check=False)
        # Not by _COMM: the journal takes that from /proc, and a short process may have ended by then.
        lines = self.journal("SYSLOG_IDENTIFIER=vfpass")
        found = [line for line in lines if "nothing to do" in line["MESSAGE"]]
        self.assertEqual(len(found), 1)
        self.assertEqual((found[0]["PRIORITY"], found[0]["_TRANSPORT"]), ("6", "journal"))


@unittest.skipUnless(shutil.which("journalctl"), "no journalctl")
class Catalog(unittest.TestCase):
    def test_systemd_reads_every_message(self):
        catalog = CHECKOUT / "packaging/vfpass.catalog"
        with tempfile.TemporaryDirectory() as root:
            place = Path(root, "usr/lib/systemd/catalog")
            place.mkdir(parents=True)
            shutil.copy(catalog, place)
            Path(root, "var/lib/systemd/catalog").mkdir(parents=True)
            subprocess.run(["journalctl", "--root", root, "--update-catalog"], check=True)
            listed = subprocess.run(["journalctl", "--root", root, "--list-catalog"], check=True, capture_output=True, text=True)
        wanted = [line for line in catalog.read_text(encoding="utf-8").splitlines() if line.startswith("-- ")]
        self.assertGreater(len(wanted), 20)
        for line in wanted:
            self.assertIn(line[3:], listed.stdout)


if __name__ == "__main__":
    if os.geteuid() != 0 or not enter_namespace():
        print("needs root and a mount namespace")
        sys.exit(77)
    unittest.main()
