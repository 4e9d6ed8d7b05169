"""edit_test.py VFPASS: `vfpass edit` checks before it saves, keeps mode and owner, and loses no change; with and without a terminal."""

import json
import os
import pty
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

VFPASS = str(Path(sys.argv.pop(1)).resolve())
MAPPING = """version: 1
vm: train0
vfs:
  - {name: rail0, pf: {netdev: ens1}}
"""


def is_running(process):
    """False also for one that has ended and that nobody has waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Edit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        self.temporary = self.home / "tmp"
        (self.home / "vms").mkdir(mode=0o755)
        self.temporary.mkdir()
        self.file = self.home / "vms" / "a.yaml"
        self.file.write_text(MAPPING)
        self.file.chmod(0o640)

    def editor(self, script):
        """An editor that runs this shell script on the file $1."""
        program = self.home / "editor"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    def environment(self, script, **more):
        return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TMPDIR": str(self.temporary),
                "LIBVIRT_DEFAULT_URI": "test:///default", "EDITOR": self.editor(script), **more}

    def edit(self, script, *arguments, vm="train0", **more):
        return subprocess.run([VFPASS, "--config-dir", self.home, *arguments, "edit", vm], env=self.environment(script, **more),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)

    def edit_on_terminal(self, script, answers):
        """Types each answer when the command asks; the exit status, and what the terminal showed."""
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe(VFPASS, [VFPASS, "--config-dir", str(self.home), "edit", "train0"], self.environment(script, TERM="dumb"))
        shown, answers, limit = "", list(answers), time.monotonic() + 30
        while time.monotonic() < limit:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                part = os.read(terminal, 4096).decode()
            except OSError:  # the child has closed the terminal
                break
            if not part:
                break
            shown += part
            if shown.endswith("(q)? ") and answers:
                os.write(terminal, (answers.pop(0) + "\n").encode())
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown

    def copies(self):
        return list(self.temporary.glob("*/*"))

    def test_saves_a_valid_mapping_with_its_mode(self):
        before = self.file.stat()
        found = self.edit('sed -i s/ens1/ens2/ "$1"')
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("ens2", self.file.read_text())
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o640)
        self.assertEqual(self.file.stat().st_uid, before.st_uid)
        self.assertIn("`vfpass plan train0`", found.stderr)
        self.assertEqual([list(self.temporary.iterdir()), os.listdir(self.home / "vms")], [[], ["a.yaml"]])

    def test_keeps_the_owner(self):
        if os.geteuid() != 0:
            self.skipTest("only root can change the owner")
        os.chown(self.file, 0, 54321)
        self.assertEqual(self.edit('sed -i s/ens1/ens2/ "$1"').returncode, 0)
        self.assertEqual(self.file.stat().st_gid, 54321)

    def test_says_that_nothing_changed(self):
        before = self.file.stat()
        found = self.edit('touch "$1"')
        self.assertEqual(found.returncode, 0)
        self.assertIn("no changes", found.stderr)
        self.assertEqual(self.file.stat(), before)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_keeps_a_copy_with_mistakes_without_a_terminal(self):
        found = self.edit('sed -i s/netdev/netdv/ "$1"')
        self.assertEqual(found.returncode, 2)
        self.assertIn("a.yaml:4:24: unknown key `netdv`", found.stderr)
        [copy] = self.copies()
        self.assertIn(str(copy), found.stderr)
        self.assertIn("netdv", copy.read_text())
        self.assertEqual(self.file.read_text(), MAPPING)

    def test_reports_mistakes_and_results_in_json(self):
        document = json.loads(self.edit('sed -i s/netdev/netdv/ "$1"', "--json").stdout)
        self.assertEqual(document["error"]["mistakes"][0]["line"], 4)
        document = json.loads(self.edit('sed -i s/ens1/ens2/ "$1"', "--json").stdout)
        self.assertEqual(document, {"schema_version": 1, "file": str(self.file), "changed": True})

    def test_edits_again_on_a_terminal(self):
        # The first edit makes a mistake, the second one corrects it.
        status, shown = self.edit_on_terminal('grep -q netdv "$1" && sed -i s/netdv/rdma/ "$1" || sed -i s/netdev/netdv/ "$1"',
                                              ["what", "e"])
        self.assertEqual(status, 0, shown)
        self.assertIn("unknown key `netdv`", shown)
        self.assertEqual(shown.count("edit again (e)"), 2)
        self.assertIn("{rdma: ens1}", self.file.read_text())

    def test_discards_on_a_terminal(self):
        status, shown = self.edit_on_terminal('sed -i s/netdev/netdv/ "$1"', ["q"])
        self.assertEqual(status, 2)
        self.assertIn("changes discarded", shown)
        self.assertEqual(self.file.read_text(), MAPPING)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_does_not_overwrite_another_change(self):
        found = self.edit(f'sed -i s/ens1/ens2/ "$1"; echo "# other" >>{self.file}')
        self.assertEqual(found.returncode, 1)
        self.assertIn("has changed in the meantime", found.stderr)
        self.assertEqual(self.file.read_text(), MAPPING + "# other\n")
        self.assertIn("ens2", self.copies()[0].read_text())

    def test_edits_a_mapping_with_mistakes(self):
        self.file.write_text(MAPPING.replace("netdev", "netdv"))
        self.assertEqual(self.edit('sed -i s/netdv/netdev/ "$1"').returncode, 0)
        self.assertEqual(self.file.read_text(), MAPPING)

    def test_refuses_a_conflict_with_another_mapping(self):
        (self.home / "vms" / "b.yaml").write_text(MAPPING.replace("train0", "train1").replace("}}", "}, index: 1}"))
        found = self.edit('sed -i "s/}}/}, index: 1}/" "$1"')
        self.assertEqual(found.returncode, 2)
        self.assertIn("VF 1 of PF netdev ens1 already belongs to rail0 of train", found.stderr)

    def test_prefers_visual_and_takes_arguments(self):
        found = self.edit("exit 1", VISUAL='sed -i -e "s/ens1/ens2/"')
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("ens2", self.file.read_text())

    def test_reports_an_editor_that_fails(self):
        for script, copies in (("exit 3", 0), ('sed -i s/ens1/ens2/ "$1"; exit 3', 1)):
            found = self.edit(script)
            self.assertEqual(found.returncode, 1)
            self.assertIn("ended with exit status 3", found.stderr)
            self.assertEqual(len(self.copies()), copies)
            self.assertEqual(self.file.read_text(), MAPPING)

    def test_reports_an_editor_that_leaves_no_mapping(self):
        for script, reason in (('rm "$1"', "No such file or directory (ENOENT)"), ('rm "$1"; mkfifo "$1"', "not a regular file"),
                               ('head -c 2000000 /dev/zero >"$1"', "larger than 1 MiB")):
            found = self.edit(script)
            self.assertEqual(found.returncode, 1)
            self.assertRegex(found.stderr, f"cannot read what the editor has left at .*: {re.escape(reason)}\n +run the command again")
            self.assertEqual(self.file.read_text(), MAPPING)

    def test_takes_a_blank_variable_for_an_unset_one(self):
        found = self.edit('sed -i s/ens1/ens2/ "$1"', VISUAL="  ")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("ens2", self.file.read_text())

    def test_plans_the_vm_that_the_mapping_has_now(self):
        found = self.edit('sed -i s/train0/train1/ "$1"')
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("as the mapping of VM train1; `vfpass plan train1` shows", found.stderr)

    def test_opens_nothing_as_a_closed_standard_stream(self):
        # The editor inherits what the streams are in vfpass; a note or a document must not go into a file or socket of vfpass.
        streams = self.home / "streams"
        program = subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", VFPASS, "--config-dir", self.home, "edit", "train0"],
                                   env=self.environment(f"all=$(for each in 0 1 2; do readlink /proc/$$/fd/$each; done); echo $all >{streams}"))
        self.assertEqual(program.wait(30), 0)
        self.assertEqual(streams.read_text().split(), ["/dev/null"] * 3)

    def test_names_the_signal_that_ended_the_editor(self):
        found = self.edit("kill -SEGV $$")
        self.assertEqual(found.returncode, 1)
        self.assertIn("was ended by SIGSEGV", found.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assertEqual(self.file.read_text(), MAPPING)

    def stopped(self, script):
        """What the command prints if a signal ends it while the editor runs."""
        started, errors, editor = self.home / "started", self.home / "errors", self.home / "pid"
        started.unlink(missing_ok=True)
        with errors.open("w") as stream:
            program = subprocess.Popen([VFPASS, "--config-dir", self.home, "edit", "train0"],
                                       env=self.environment(f"{script}\necho $$ >{editor}\ntouch {started}\nexec tail -f /dev/null"),
                                       stdin=subprocess.DEVNULL, stderr=stream, start_new_session=True)
        self.addCleanup(lambda: program.poll() is None and os.killpg(program.pid, signal.SIGKILL))
        limit = time.monotonic() + 30
        while not started.exists() and time.monotonic() < limit:
            time.sleep(0.01)
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(30), -signal.SIGTERM)
        self.assertFalse(is_running(int(editor.read_text())), "the editor ends, too")
        self.assertEqual(self.file.read_text(), MAPPING)
        return errors.read_text()

    def test_removes_its_copy_when_a_signal_ends_it(self):
        self.assertNotIn("edited copy", self.stopped(":"))
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_names_a_copy_with_changes_when_a_signal_ends_it(self):
        errors = self.stopped('sed -i s/ens1/ens2/ "$1"')
        [copy] = self.copies()
        self.assertIn(str(copy), errors)
        self.assertIn("ens2", copy.read_text())

    def test_keeps_what_the_editor_writes_when_a_signal_ends_it(self):
        errors = self.stopped('echo unsaved >"$1.save"')
        self.assertEqual(sorted(each.name for each in self.copies()), ["a.yaml", "a.yaml.save"])
        self.assertIn("changes that are not saved may be in a.yaml.save beside it", errors)

    def test_kills_an_editor_that_ignores_the_signal(self):
        self.assertNotIn("edited copy", self.stopped("trap '' TERM"))

    def test_restores_the_terminal_when_a_signal_ends_it(self):
        started = self.home / "started"
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe(VFPASS, [VFPASS, "--config-dir", str(self.home), "edit", "train0"],
                       self.environment(f"stty -echo\ntouch {started}\nexec tail -f /dev/null"))
        self.addCleanup(os.close, terminal)
        limit = time.monotonic() + 30
        while not started.exists() and time.monotonic() < limit:
            time.sleep(0.01)
        self.assertFalse(termios.tcgetattr(terminal)[3] & termios.ECHO)
        os.kill(child, signal.SIGTERM)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGTERM)
        self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ECHO)

    def test_suggests_init_for_a_vm_without_mapping(self):
        found = self.edit("exit 1", vm="other")
        self.assertEqual(found.returncode, 2)
        self.assertIn("vfpass init other", found.stderr)

    def test_suggests_import_for_a_vm_with_devices_of_the_host(self):
        node = self.home / "node.xml"
        node.write_text("""<node>
  <domain type='test'>
    <name>hand0</name>
    <uuid>0f5e9a3c-1111-4222-8333-944455566671</uuid>
    <memory unit='MiB'>1024</memory>
    <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>
    <devices>
      <controller type='pci' index='0' model='pcie-root'/>
      <controller type='pci' index='1' model='pcie-root-port'/>
      <hostdev mode='subsystem' type='pci' managed='yes'>
        <source><address domain='0x0000' bus='0x01' slot='0x00' function='0x2'/></source>
      </hostdev>
    </devices>
    <test:runstate xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>5</test:runstate>
  </domain>
</node>
""")
        for vm in ("hand0", "0f5e9a3c-1111-4222-8333-944455566671"):
            found = self.edit("exit 1", vm=vm, LIBVIRT_DEFAULT_URI=f"test://{node}")
            self.assertEqual(found.returncode, 2)
            self.assertIn(f"`vfpass import {vm}`", found.stderr)
            self.assertIn(f"`vfpass init {vm}`", found.stderr)

    def test_refuses_a_link_and_a_file_that_others_can_write(self):
        self.file.chmod(0o666)
        found = self.edit("exit 1")
        self.assertEqual(found.returncode, 2)
        self.assertIn("chmod o-w", found.stderr)
        shutil.move(self.file, self.home / "kept.yaml")
        self.file.symlink_to(self.home / "kept.yaml")
        self.assertIn("expected a regular file", self.edit("exit 1", vm="a").stderr)

    def test_keeps_the_file_if_the_disk_is_full(self):
        script = f'head -c 4000 /dev/zero | tr "\\0" "#" >>"$1"; echo >>"$1"'
        found = subprocess.run(["sh", "-c", 'trap "" XFSZ; ulimit -f 2; exec "$@"', "sh", VFPASS, "--config-dir", str(self.home),
                                "edit", "train0"], env=self.environment(f'(ulimit -f unlimited; {script})'),
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
        self.assertNotEqual(found.returncode, 0)
        self.assertEqual(self.file.read_text(), MAPPING)
        self.assertEqual(os.listdir(self.home / "vms"), ["a.yaml"])
        [copy] = self.copies()
        self.assertIn(f"; the edited copy is {copy}", found.stderr)
        self.assertIn("####", copy.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
