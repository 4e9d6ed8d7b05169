"""The versions of kernel, libvirt, QEMU and compiler that a lab test ran with."""

import os
import re
import subprocess
from pathlib import Path


def output_of(*command):
    """Empty if the program is missing or fails, so that an unknown version is omitted."""
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def own_release():
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    return re.search(r"^VERSION_CODENAME=(\S+)$", text, re.MULTILINE).group(1)


def build_directory(release, checkout):
    return checkout / ("build" if release == own_release() else f"build-{release}")


def lab_directory(release, checkout):
    """The output directory of lab/prepare, chosen as in lab/run."""
    return Path(os.environ.get("VFPASS_LAB_BUILD") or build_directory(release, checkout) / "lab")


def package(root, name):
    return output_of("dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show", "--showformat=${Version}", name)


def compiler(program):
    """The compiler's version as recorded in the program."""
    found = re.findall(r"GCC: \(([^)]*)\)", output_of("readelf", "--string-dump=.comment", program))
    return ", ".join(f"GCC {each}" for each in sorted(set(found)))


def emulator():
    """The QEMU that emulates the host under test."""
    found = re.search(r"version (.*)", output_of("qemu-system-x86_64", "--version"))
    return f"QEMU {found.group(1)}" if found else ""


def busybox_guest(guest, lab):
    """A busybox guest boots the kernel of the host under test."""
    kernel = (lab / "kernel/version").read_text(encoding="utf-8").strip()
    parts = {"kernel": kernel, "busybox": package("", "busybox-static"),
             "qemu-guest-agent": package(lab / "root", "qemu-guest-agent")}
    return {f"guest {guest}": ", ".join(f"{name} {version}" for name, version in parts.items() if version)}


def printed_versions(output):
    """Versions that the test itself printed on lines `version: NAME: VALUE`."""
    return dict(re.findall(r"^version: ([^:\n]+): (.+?)\s*$", output, re.MULTILINE))


def versions(test, release, checkout, output):
    lab = lab_directory(release, checkout)
    found = {"kernel": (lab / "kernel/version").read_text(encoding="utf-8").strip(),
             "libvirt": package(lab / "root", "libvirt-daemon-driver-qemu"),
             "QEMU": package(lab / "root", "qemu-system-x86"),
             "compiler": compiler(build_directory(release, checkout) / "sbin/vfpass"), "emulator": emulator()}
    for guest in test.guests:
        if guest.startswith("busybox"):
            found |= busybox_guest(guest, lab)
    return {name: version for name, version in (found | printed_versions(output)).items() if version}
