"""Shared by the tests of the Ansible collection: imports it from the checkout, and makes fleets of example hosts."""

import os
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
COLLECTIONS = CHECKOUT / "contrib/ansible"
CONNECTX6 = CHECKOUT / "tests/cli/hosts/connectx6"
# Debian's Python, which has Ansible; another one may be first in PATH.
PYTHON = "/usr/bin/python3"
VFPASS = os.environ.get("VFPASS", str(CHECKOUT / "build/sbin/vfpass"))
sys.path.insert(0, str(COLLECTIONS))

UUID = "0f5e9a3c-1111-4222-8333-944455566677"


def vf(name="rail0", **keys):
    return {"name": name, "pf": {"pci": "0000:3b:00.0"}, **keys}


def item(*vfs, vm="train0", **keys):
    """One item of vfpass_vms."""
    return {"mapping": {"version": 1, "vm": vm, "vfs": list(vfs)}, **keys}


def fleet_of(hosts, settings=None, policies=None):
    """A fleet from items by host."""
    from ansible_collections.vfpass.vfpass.plugins.plugin_utils.model import Fleet
    fleet = Fleet(settings)
    for host, items in hosts.items():
        fleet.add_host(host, items, (policies or {}).get(host))
    return fleet


POLICY = {"version": 1, "pfs": [{"pf": {"netdev": "ens1f0np0"}, "mtu": 9000}]}
READ_ONLY = ("check ", "init ", "plan ", "host show", "host apply --dry-run", "detach --dry-run", "status", "doctor", "topo")


class CapturedHost:
    """A host of its own: a captured tree with one PF, a libvirt with VM train0, and directories for vfpass."""

    def __init__(self, folder, number=0):
        self.folder = Path(folder)
        (self.folder / "config/vms").mkdir(parents=True, mode=0o755)
        (self.folder / "recorder").mkdir()
        self.config = self.folder / "config"
        self.node = self.folder / "node.xml"
        self.node.write_text(f"""<node><domain type='test'>
            <name>train0</name><uuid>0f5e9a3c-1111-4222-8333-9444555666{number:02x}</uuid><memory unit='MiB'>1024</memory>
            <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>
            <devices><controller type='pci' index='0' model='pcie-root'/></devices>
            <test:runstate xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>5</test:runstate></domain></node>""")

    def options(self):
        """Options of the modules."""
        return {"program": str(Path(__file__).resolve().parent / "recorder"), "config_dir": str(self.config),
                "state_dir": str(self.folder / "state"), "run_dir": str(self.folder / "run"),
                "connect": f"test://{self.node}", "sysroot": str(CONNECTX6)}

    def environment(self):
        return {"RECORDER": str(self.folder / "recorder"), "VFPASS": VFPASS}

    def calls(self):
        file = self.folder / "recorder/calls"
        return file.read_text().splitlines() if file.exists() else []

    def changing_calls(self):
        """Since the last time."""
        found = [call for call in self.calls() if not call.startswith(READ_ONLY)]
        (self.folder / "recorder/calls").unlink(missing_ok=True)
        return found

    def files(self):
        return sorted(str(path.relative_to(self.config)) for path in self.config.rglob("*") if path.is_file())
