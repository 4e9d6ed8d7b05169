"""packaging/network: udev marks the netdevs of VFs, and NetworkManager and systemd-networkd then leave them alone.

The programs are the real ones, in namespaces of their own. Without an SR-IOV device, the test has two halves. udev applies
the rules to devices of a directory that looks like sysfs (`udevadm test`). The properties that result become the entries of
its database for veth devices of the same names, which the network managers find."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SNIPPETS = Path(__file__).resolve().parents[2] / "packaging" / "network"
RULES = SNIPPETS / "95-vfpass-vf.rules"
NETWORKD = "/lib/systemd/systemd-networkd"
PF, VF, OTHER_PF, OTHER_VF = "ens1f0np0", "ens1f0v0", "ens2f0", "ens2f0v0"
# As in docs/network-managers.md.
PF_EXCEPTED = f'SUBSYSTEM=="net", TEST=="device/physfn/net/{PF}", ENV{{VFPASS_VF}}="0"'
VF_EXCEPTED = 'SUBSYSTEM=="net", KERNELS=="0000:3b:00.2", ENV{VFPASS_VF}="0"'
ALL_EXCEPTED = 'SUBSYSTEM=="net", TEST=="device/physfn", ENV{VFPASS_VF}="0"'
PF_INCLUDED = PF_EXCEPTED.replace('"0"', '"1"')
TRIGGER = "udevadm trigger --action=change --subsystem-match=net --attr-match=device/physfn/vendor=0x15b3"
# Without IPv6: systemd-networkd would wait for a router.
NETPLAN = """network:
  version: 2
  renderer: %s
  ethernets:
    all: {match: {name: 'e*'}, addresses: [192.0.2.1/24], accept-ra: false, link-local: []}
"""

# The root of a bus whose programs start no other one.
BUS = """<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>"""

VETHS = """
mkdir -p /run/udev/data
touch /run/udev/control
ip link set lo up
for name in $NAMES; do
    ip link add "$name" type veth peer name "p$name"
    ip link set "p$name" up
    cp "$WORK/properties-$name" "/run/udev/data/n$(cat "/sys/class/net/$name/ifindex")"
    printf 'I:1\\nE:NM_UNMANAGED=1\\n' >"/run/udev/data/n$(cat "/sys/class/net/p$name/ifindex")"
done
# await COMMAND...: until it succeeds, at most 30 s.
await() {
    local attempt
    for attempt in $(seq 300); do ! "$@" || return 0; sleep 0.1; done
    echo "timeout: $*" >&2
    return 1
}
"""

RUN_NETWORKD = """
mkdir -p /run/systemd/network
mount -t tmpfs none /etc/systemd/network
mount --bind "$WORK/empty" /usr/lib/systemd/network
install -m 644 "$SNIPPET" /etc/systemd/network/
# Readable for the user of systemd-networkd.
install -m 644 "$WORK"/generated/run/systemd/network/*.network /run/systemd/network/
%s >"$WORK/log" 2>&1 &
state() { sed -n 's/^ADMIN_STATE=//p' "/run/systemd/netif/links/$(cat "/sys/class/net/$1/ifindex")"; }
decided() { case $(state "$1" 2>/dev/null) in configured | unmanaged) ;; *) return 1 ;; esac; }
for name in $NAMES; do await decided "$name" || { cat "$WORK/log" >&2; exit 1; }; done
for name in $NAMES; do echo "$name $(state "$name") $(ip -o -4 address show dev "$name" | wc -l)"; done
""" % NETWORKD

RUN_NETWORK_MANAGER = """
for directory in /etc/NetworkManager /usr/lib/NetworkManager/conf.d /var/lib/NetworkManager; do
    [ ! -d "$directory" ] || mount -t tmpfs none "$directory"
done
mkdir -p /run/dbus /run/NetworkManager
cp -r "$WORK/generated/run/NetworkManager/." /run/NetworkManager/
printf '[main]\\nplugins=keyfile\\nauth-polkit=false\\ndns=none\\nrc-manager=unmanaged\\nhostname-mode=none\\n' \
    >/etc/NetworkManager/NetworkManager.conf
dbus-daemon --config-file="$WORK/bus.conf" --fork
NetworkManager --no-daemon >"$WORK/log" 2>&1 &
state() { nmcli -t -f DEVICE,STATE device 2>/dev/null | sed -n "s/^$1://p"; }
decided() { case $(state "$1") in connected | unmanaged) ;; *) return 1 ;; esac; }
for name in $NAMES; do await decided "$name" || { cat "$WORK/log" >&2; exit 1; }; done
for name in $NAMES; do echo "$name $(state "$name") $(ip -o -4 address show dev "$name" | wc -l)"; done
nmcli device set "$LAST" managed yes
managed() { [ "$(state "$LAST")" != unmanaged ]; }
await managed
echo "by hand: managed"
"""


def fake_sysfs(root):
    """A PF with a VF, and the same of another vendor. Returns the device of each netdev."""
    bus = root / "devices/pci0000:00"
    for name in ("class/net", "class/pci_bus", "bus/pci"):
        (root / name).mkdir(parents=True)
    devices = {}
    for index, (address, vendor, physfn, netdev) in enumerate((("0000:3b:00.0", "0x15b3", None, PF),
                                                               ("0000:3b:00.2", "0x15b3", "0000:3b:00.0", VF),
                                                               ("0000:5e:00.0", "0x8086", None, OTHER_PF),
                                                               ("0000:5e:00.2", "0x8086", "0000:5e:00.0", OTHER_VF)), 2):
        function = bus / address
        device = function / "net" / netdev
        device.mkdir(parents=True)
        (function / "vendor").write_text(vendor + "\n", encoding="ascii")
        (function / "uevent").write_text(f"PCI_SLOT_NAME={address}\n", encoding="ascii")
        (function / "subsystem").symlink_to("../../../bus/pci")
        if physfn:
            (function / "physfn").symlink_to(f"../{physfn}")
        (device / "device").symlink_to("../..")
        (device / "subsystem").symlink_to("../../../../../class/net")
        (device / "uevent").write_text(f"INTERFACE={netdev}\nIFINDEX={index}\n", encoding="ascii")
        (device / "ifindex").write_text(f"{index}\n", encoding="ascii")
        devices[netdev] = f"/sys/devices/pci0000:00/{address}/net/{netdev}"
        (root / "class/net" / netdev).symlink_to(f"../../{device.relative_to(root)}")
    return devices


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("udevadm"), "needs root and udev")
class NetworkManagersTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = Path(directory.name)
        self.work.chmod(0o755)
        (self.work / "empty").mkdir()
        self.devices = fake_sysfs(self.work / "sys")
        self.rules = self.work / "rules"
        self.rules.mkdir()

    def isolated(self, script, **environment):
        """Runs the script as root of new namespaces. Its processes end with it."""
        done = subprocess.run(
            ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-euc",
             "mount -t tmpfs none /run\nmkdir -p /run/udev\n" + script],
            env={"PATH": os.environ["PATH"], "WORK": str(self.work), **environment}, capture_output=True, text=True, check=False,
            timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def activate(self):
        """As documented: a link, next to the system's own rules."""
        (self.rules / RULES.name).symlink_to(RULES)

    def udev(self, netdev, action="add"):
        """The properties that udev gives to the netdev."""
        output = self.isolated(
            'mkdir -p /run/udev/rules.d\ncp -P "$WORK"/rules/. /run/udev/rules.d/ -r\nmount --bind "$WORK/sys" /sys\n'
            'udevadm test --action="$ACTION" "$DEVICE" 2>&1',
            ACTION=action, DEVICE=self.devices[netdev], SYSTEMD_DEVICE_VERIFY_SYSFS="0")
        return dict(re.findall(r"^\s*([A-Z][A-Z_]*)=(.*)$", output, re.MULTILINE))

    def marks(self, netdev, action="add"):
        found = self.udev(netdev, action)
        self.assertEqual(found["INTERFACE"], netdev)
        return found.get("VFPASS_VF"), found.get("NM_UNMANAGED")

    def generate(self, renderer):
        """netplan's own files for every netdev whose name begins with e, such as cloud images have."""
        source = self.work / "generated/etc/netplan/90-default.yaml"
        source.parent.mkdir(parents=True)
        source.write_text(NETPLAN % renderer, encoding="utf-8")
        source.chmod(0o600)
        # It ends by reloading systemd, which need not run here.
        done = subprocess.run(["netplan", "generate", "--root-dir", self.work / "generated"], capture_output=True, text=True,
                              check=False)
        self.assertTrue((self.work / "generated/run/udev/rules.d").exists(), done.stderr)

    def manager(self, script):
        """For each netdev, its state and the number of its addresses."""
        for netdev in (PF, VF):
            lines = [f"E:{name}={value}\n" for name, value in self.udev(netdev).items()
                     if name in ("VFPASS_VF", "NM_UNMANAGED")]
            (self.work / f"properties-{netdev}").write_text("I:1\n" + "".join(lines), encoding="ascii")
        return self.isolated("mount -t sysfs none /sys\n" + VETHS + script, NAMES=f"{PF} {VF}", LAST=VF,
                             SNIPPET=str(SNIPPETS / "05-vfpass-vf.network")).splitlines()

    def test_only_vfs_of_connectx_are_marked(self):
        self.activate()
        self.assertEqual(self.marks(VF), ("1", "1"))
        for netdev in (PF, OTHER_PF, OTHER_VF):
            self.assertEqual(self.marks(netdev), (None, None), netdev)

    def test_mark_lasts_through_later_events(self):
        self.activate()
        for action in ("change", "move", "online"):
            self.assertEqual(self.marks(VF, action), ("1", "1"), action)

    def test_nothing_is_marked_without_the_rule(self):
        self.assertEqual(self.marks(VF), (None, None))
        # The link of a package that was removed.
        (self.rules / RULES.name).symlink_to(self.work / "missing")
        self.assertEqual(self.marks(VF), (None, None))

    def test_administrator_can_make_exceptions(self):
        self.activate()
        for exceptions, marks in (([PF_EXCEPTED], ("0", None)), ([VF_EXCEPTED], ("0", None)), ([ALL_EXCEPTED], ("0", None)),
                                  ([ALL_EXCEPTED, PF_INCLUDED], ("1", "1")),
                                  ([PF_EXCEPTED.replace(PF, "ens9"), VF_EXCEPTED.replace("00.2", "00.3")], ("1", "1"))):
            (self.rules / "50-host-vfs.rules").write_text("\n".join(exceptions) + "\n", encoding="ascii")
            self.assertEqual(self.marks(VF), marks, exceptions)

    def test_trigger_concerns_only_vfs_of_connectx(self):
        output = self.isolated(f'mount --bind "$WORK/sys" /sys\n{TRIGGER} --dry-run --verbose', SYSTEMD_DEVICE_VERIFY_SYSFS="0",
                               SYSTEMD_IGNORE_CHROOT="1")
        self.assertEqual(output.split(), [self.devices[VF]])

    def test_documentation_has_what_is_tested_here(self):
        lines = (SNIPPETS.parents[1] / "docs/network-managers.md").read_text(encoding="utf-8").splitlines()
        for line in (PF_EXCEPTED, VF_EXCEPTED, ALL_EXCEPTED, PF_INCLUDED, TRIGGER):
            self.assertIn("    " + line, lines)
        self.assertIn("#     " + PF_EXCEPTED, RULES.read_text(encoding="utf-8").splitlines())

    def test_udev_verifies_the_rules(self):
        version = int(re.match(r"\d+", subprocess.run(["udevadm", "--version"], capture_output=True, text=True,
                                                      check=True).stdout)[0])
        if version < 254:
            self.skipTest("udevadm verify needs systemd 254")
        subprocess.run(["udevadm", "verify", RULES], check=True)

    @unittest.skipUnless(shutil.which("netplan"), "needs netplan")
    def test_netplans_rule_does_not_clear_the_mark(self):
        self.generate("NetworkManager")
        generated = list((self.work / "generated/run/udev/rules.d").iterdir())
        self.assertTrue(generated)
        for file in generated:
            # The fake netdevs have no ID_NET_NAME.
            text = file.read_text(encoding="utf-8").replace("ENV{ID_NET_NAME}", "ENV{INTERFACE}")
            (self.rules / file.name).write_text(text, encoding="utf-8")
        self.assertEqual(self.marks(VF), (None, "0"), "netplan does nothing here")
        self.activate()
        self.assertEqual(self.marks(VF), ("1", "1"))

    @unittest.skipUnless(shutil.which("netplan") and os.access(NETWORKD, os.X_OK), "needs systemd-networkd and netplan")
    def test_networkd_leaves_marked_vfs_alone(self):
        self.generate("networkd")
        self.assertEqual(self.manager(RUN_NETWORKD), [f"{PF} configured 1", f"{VF} configured 1"])
        self.activate()
        self.assertEqual(self.manager(RUN_NETWORKD), [f"{PF} configured 1", f"{VF} unmanaged 0"])

    @unittest.skipUnless(shutil.which("netplan") and shutil.which("NetworkManager") and shutil.which("dbus-daemon"),
                         "needs NetworkManager, dbus-daemon and netplan")
    def test_network_manager_leaves_marked_vfs_alone(self):
        (self.work / "bus.conf").write_text(BUS, encoding="utf-8")
        self.generate("NetworkManager")
        for profile in (self.work / "generated/run/NetworkManager/system-connections").iterdir():
            # For several netdevs at the same time.
            text = profile.read_text(encoding="utf-8").replace("[connection]\n", "[connection]\nmulti-connect=3\n")
            profile.write_text(text, encoding="utf-8")
        by_hand = "by hand: managed"
        self.assertEqual(self.manager(RUN_NETWORK_MANAGER), [f"{PF} connected 1", f"{VF} connected 1", by_hand])
        self.activate()
        self.assertEqual(self.manager(RUN_NETWORK_MANAGER), [f"{PF} connected 1", f"{VF} unmanaged 0", by_hand])


if __name__ == "__main__":
    unittest.main()
