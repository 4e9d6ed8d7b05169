"""packaging/systemd/verify-sandbox, which vfpass-verify.service and vfpass-verify@.service contain, permits what `vfpass
verify` does. What systemd enforces by itself (its sandbox of the file system, its system call filter) is only compared with
this list; the capabilities are also tried."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

UNITS = Path(__file__).resolve().parents[2] / "packaging" / "systemd"

# What the code needs, and why.
CAPABILITIES = {
    # src/host/holders: the targets of /proc/PID/fd/* of libvirt-qemu's QEMU. proc_pid_readlink() asks ptrace_may_access()
    # with PTRACE_MODE_READ_FSCREDS, which refuses another user's process, and one that is not dumpable.
    "CAP_SYS_PTRACE",
    # The directory /proc/PID/fd itself has mode 0500 and belongs to QEMU's user.
    "CAP_DAC_READ_SEARCH",
    # The VF's counters and attributes over netlink.
    "CAP_NET_ADMIN",
    # /dev/kmsg, of which a report quotes lines. Linux 6.12 accepts only this one (check_syslog_permissions).
    "CAP_SYSLOG",
}
ADDRESS_FAMILIES = {"AF_NETLINK", "AF_UNIX"}  # the kernel, libvirt's socket
# With these settings the unit would not see other processes or the state directory.
FORBIDDEN = ("PrivateUsers", "PrivatePIDs", "ProcSubset", "DynamicUser", "User")


def settings(file="verify-sandbox"):
    found = {}
    for line in (UNITS / file).read_text(encoding="utf-8").splitlines():
        match = re.match(r"([A-Za-z]+)=(.*)", line)
        if match:
            found.setdefault(match[1], []).extend(match[2].split())
    return found


def setpriv(capabilities, command):
    """Runs the command as root with this bounding set and such a /proc, as systemd does."""
    names = ",".join("+" + name.removeprefix("CAP_").lower() for name in sorted(capabilities))
    # ProtectProc=invisible: a /proc of its own, mounted with hidepid=2.
    return subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh",
                           "setpriv", "--bounding-set", "-all," + names, "--no-new-privs", *command],
                          capture_output=True, text=True, check=False)


class VerifyUnitTest(unittest.TestCase):
    def test_unit_has_exactly_the_needed_capabilities(self):
        self.assertEqual(set(settings()["CapabilityBoundingSet"]), CAPABILITIES)

    def test_unit_permits_sockets_and_system_calls(self):
        unit = settings()
        self.assertEqual(set(unit["RestrictAddressFamilies"]), ADDRESS_FAMILIES)
        self.assertEqual(unit["SystemCallFilter"], ["@system-service", "~@privileged", "@resources"])
        self.assertEqual(unit["ProtectProc"], ["invisible"])
        for name in FORBIDDEN:
            self.assertNotIn(name, unit)

    def test_unit_does_not_end_the_run_before_the_last_vm(self):
        for unit in ("vfpass-verify.service.in", "vfpass-verify@.service.in"):
            self.assertEqual(settings(unit)["TimeoutStartSec"], ["infinity"])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_descriptors_of_another_users_process_are_readable(self):
        nobody = 65534
        with tempfile.NamedTemporaryFile() as opened:
            os.chmod(opened.name, 0o644)
            with open(opened.name, "rb") as held, subprocess.Popen(
                    ["sleep", "600"], stdin=held, user=nobody, group=nobody, extra_groups=[]) as other:
                link = ["readlink", f"/proc/{other.pid}/fd/0"]
                try:
                    allowed = setpriv(settings()["CapabilityBoundingSet"], link)
                    refused = setpriv(CAPABILITIES - {"CAP_SYS_PTRACE"}, link)
                finally:
                    other.kill()
        self.assertEqual(allowed.stdout.strip(), opened.name, allowed.stderr)
        self.assertNotEqual(refused.returncode, 0, "without CAP_SYS_PTRACE nothing is tested")


if __name__ == "__main__":
    unittest.main()
