"""remedies_test.py VFPASS UNIT_DOCTOR: no remedy does harm.

A file that belongs to another program is changed by that program's own command, or the change is described in words.
Every remedy that the unit tests of doctor produce, and every command in a message of the source, is either in the table
ALLOWED or fails. The remedies for other programs that create VFs are then run as printed, on real files; the owner of the
file must accept the result, and the check must pass because the setting is gone and everything else is still there.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

VFPASS, UNIT_DOCTOR = (str(Path(sys.argv.pop(1)).resolve()) for _ in range(2))
CHECKOUT = Path(__file__).resolve().parent.parent.parent

# Where code continues the text, `x` stands for it: to `enable --now` src/commands/host_facts.cpp adds only units of vfpass.
# Commands that change nothing, that change the kernel's state, or by which a program changes its own files.
ALLOWED = {
    "apt": r"(install|purge) [a-z0-9. -]+",
    "cat": r"/(proc|sys)/.*",
    "chmod": r"(go-w|0600|0755) .*",
    "chown": r"root .*",
    "dcb": r"pfc show .*",
    "devlink": r"(dev eswitch (show|set)|health show) .*",
    "dmesg": r".*",
    "dnf": r"(install|remove) [a-z0-9. -]+",
    "dracut": r"(-f|--force|--regenerate-all).*",
    "fmpm": r"-l|-d (\d+|x)",
    "fuser": r"-v .*",
    "grep": r".*",
    "grubby": r"--update-kernel=ALL --(remove-)?args=.*",
    "ip": r"((-details )?link show.*|-details link.*|link set dev \S+ (up|mtu \d+))",
    "journalctl": r"(-u|-k) .*",
    "kill": r"[\d ]+",
    "lsmod": r".*",
    "lspci": r".*",
    "mkdir": r"-p /etc/\S+\.d",
    "mlnx_qos": r"-i .*",
    "mlxconfig": r"(-e )?-d \S+ (query|set) ?.*",
    "modinfo": r"\w+",
    "modprobe": r"(-r )?[\w-]*",
    "mokutil": r"--(import|test-key) .*",
    "mstconfig": r"(-e )?-d \S+ (query|set) ?.*",
    "mstflint": r"-d \S+ query.*",
    "netplan": r"(set \S*ethernets\.\S+=null'?|generate)",
    "networkctl": r"reload",
    "nmcli": r"connection (modify (uuid|id) .* remove sriov|reload|edit)",
    "nvidia-smi": r".*",
    "pidof": r".*",
    "podman": r"stop .*",
    "docker": r"stop .*",
    "qemu-system-aarch64": r"--version",
    "qemu-system-x86_64": r"--version",
    "rdma": r"(link|system|link delete .*|resource .*)?",
    "rdma_topo": r"check",
    "restorecon": r"-v /usr/libexec/vfpass/.*",
    "rmmod": r"\w+",
    "semanage": r"fcontext .* /usr/libexec/vfpass/.*",
    "setsebool": r"-P .*",
    "ssh": r".*",
    "sysctl": r"-w (net[./]ipv4[./][\w./-]+=\d+ ?)+|fs\.file-max",
    "systemctl": r"(daemon-reload|enable --now (vfpass-\S+|x)|edit \S+|list-jobs|(reboot --firmware-setup)|(re)?(start|load) .*|restart .*|status [\w-]+|stop .*)",
    "systemd-machine-id-setup": r"",
    "udevadm": r"control --reload",
    "update-grub": r".*",
    "update-initramfs": r"-u.*",
    "grub2-mkconfig": r".*",
    "vfpass": r".*",
    "vfpass-probe": r"inventory",
    "virsh": r".*",
    "zypper": r"(install|remove) [a-z0-9. -]+",
}
# These write a file, whose place harm_in judges. `echo` may only add a line: it would lose the others.
WRITERS = {"echo": r"[\w -]+ (> ?/(sys|proc/sys)/|>> ?/).*", "printf": r"'.*' >>? ?/.*", "ln": r"-s \S+/95-vfpass-vf\.rules /etc/udev/rules\.d/"}
EDITORS = re.compile(r"(?:^|[`;|&]\s*|\b(?:run|sudo|then|and)\s+)(?:sed|perl|awk|ed|ex|tee|rm|mv|cp|dd|truncate|patch|install|python3?)\s+[-/'\"]")
# How remedies in words begin, except those that say what is the case already.
WORDS = set("""a accept add all append ask bind boot build burn check choose close compare copy correct detach disable enable end exclude
    in inspect install let list load look make move no omit on other plug power-cycle put raise reboot reinstall release
    remove repair replace request reserve restart run set shut specify start stop the try turn update upgrade use wait with
    write needs needed""".split())
# Backticks also mark what people write into a file.
QUOTED = re.compile(r"[\w.-]+:.*|auto|legacy|switchdev|[-:?/]|[a-z0-9-]+|options \S.*|softdep \S.*|.*NUM_OF_VFS.*|GRUB_CMDLINE_LINUX\w*=[\x22].*|\W.*", re.DOTALL)


def harm_in(text):
    """The part of a remedy that edits a file of another program, or None."""
    if found := EDITORS.search(text):
        return found[0].strip()
    for target in re.findall(r"(?<![<=-])>>?\s*['\"]?(/?\S*)", text):
        own = Path(target).name.startswith("vfpass") or target == ""
        if not target.startswith(("/sys/", "/proc/sys/", "=")) and not own:
            return "> " + target
    return None


def is_allowed(command):
    words = re.sub(r"^sudo ", "", command.strip())
    program, _, arguments = words.partition(" ")
    pattern = ALLOWED.get(program) or WRITERS.get(program)
    if pattern is None and program not in ALLOWED:
        return False
    return re.fullmatch(pattern or "", re.sub(r"\s+# .*", "", arguments).strip(), re.DOTALL) is not None


def commands_in(remedy):
    """The commands of a remedy, or None if it is neither a command nor words."""
    quoted = re.findall(r"`([^`]*)`", remedy)
    outside = re.sub(r"`[^`]*`", "", remedy)
    found = [each for each in quoted if not QUOTED.fullmatch(each)]
    first = re.sub(r"^sudo ", "", outside.strip()).partition(" ")[0].strip(",;:")
    if first in ALLOWED or first in WRITERS:
        # `, then reboot` and `  # remark` are words.
        found.append(re.split(r",? then |,? or |, | \(|  #", outside)[0])
    elif first and first.lower() not in WORDS and not quoted and first.islower() and not re.match(r"\S+ is .* already", outside):
        return None
    found += re.findall(r"\brun ((?:update-|grub|dracut|systemctl|vfpass|modprobe)[^,;()]*?)(?: and | again|,|;|\(|$)", outside)
    return [part for each in found for part in re.split(r" (?:&&|\|\|) |; ", each)]


def problem_with(remedy):
    """Why this remedy must not be printed, or None."""
    if harm := harm_in(remedy):
        return f"edits another program's file ({harm}): use the program's own command, or words"
    commands = commands_in(remedy)
    if commands is None:
        return "neither a command in ALLOWED nor words in WORDS"
    wrong = [each for each in commands if each.strip() and not is_allowed(each.split(" | ")[0])]
    return f"not in ALLOWED: {wrong[0]}" if wrong else None


def remedies_of_doctor():
    """Every remedy of the unit tests, with the key of its check."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "remedies"
        run = subprocess.run([UNIT_DOCTOR, "--gtest_brief=1"], env={**os.environ, "VFPASS_REMEDIES": str(file)}, cwd=folder,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode:
            raise AssertionError(run.stdout)
        lines = {line for line in file.read_text(encoding="utf-8").splitlines() if "\t" in line}
    return sorted(line.split("\t", 1) for line in lines if line.split("\t", 1)[1])


def messages_of_source():
    """Every run of string literals in the source that has a command in backticks or writes a file of the system."""
    literals = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
    for file in sorted((CHECKOUT / "src").rglob("*.[ch]pp")):
        text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', file.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
        for run in literals.finditer(text):
            yield file.relative_to(CHECKOUT), "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', run[0]))


class EveryRemedy(unittest.TestCase):
    def test_every_remedy_of_doctor_is_harmless(self):
        remedies = remedies_of_doctor()
        self.assertGreater(len({key for key, _ in remedies}), 35)
        self.assertEqual([], [(key, remedy, problem) for key, remedy in remedies if (problem := problem_with(remedy))])

    def test_every_command_in_a_message_is_harmless(self):
        problems, found = [], 0
        for file, text in messages_of_source():
            if harm := EDITORS.search(text):
                problems.append((str(file), text, harm[0]))
            # Where code continues the text, the command ends with a space.
            for command in re.findall(r"`((?:%s) [^`]*)" % "|".join(map(re.escape, (*ALLOWED, *WRITERS))), text):
                found += 1
                complete = command + "x" if command.endswith((" ", "/")) else command
                if not is_allowed(complete):
                    problems.append((str(file), command, "not in ALLOWED"))
        self.assertGreater(found, 150)
        self.assertEqual([], problems)

    def test_every_remedy_in_the_documentation_is_harmless(self):
        for page in ("doctor.md", "troubleshooting.md", "network-managers.md"):
            text = (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
            self.assertEqual([], [each for each in re.findall(r"`[^`\n]+`", text) if EDITORS.search(each) and "vfpass" not in each], page)

    def test_harmful_remedies_are_found(self):
        for remedy in (
            "sed -i '/virtual-function-count/d' /etc/netplan/a.yaml",
            "run `sed -i /x/d /etc/fstab`",
            "echo blacklist nouveau > /etc/modprobe.d/blacklist.conf",
            "echo virt_enabled 2 >> /etc/opensm/opensm.conf && systemctl restart opensm",
            "echo blacklist nouveau > /etc/modprobe.d/vfpass-gpu.conf",
            "echo 1 | tee /etc/x.conf",
            "perl -pi -e s/a/b/ /etc/x",
            "netplan set ethernets.ens1.dhcp4=true",
            "nmcli connection delete ens1",
            "systemctl mask libvirtd",
            "mstconfig -d 0000:03:00.0 reset",
            "frobnicate --all",
            "in /etc/x, remove a; then `rm -rf /etc/y`",
        ):
            with self.subTest(remedy):
                self.assertIsNotNone(problem_with(remedy))

    def test_harmless_remedies_are_accepted(self):
        for remedy in (
            "modprobe kvm_intel",
            "echo blacklist nouveau >> /etc/modprobe.d/vfpass-gpu.conf, then run update-initramfs -u and reboot",
            "echo N > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
            "in /etc/x, remove a; then `udevadm control --reload`",
            "netplan set 'ethernets.a\\.5.virtual-function-count=null'",
            "mstconfig -d 0000:03:00.0 set SRIOV_EN=1 NUM_OF_VFS=16, then power-cycle the machine",
            "ip link set dev ens1 up  # then check cable and switch",
        ):
            with self.subTest(remedy):
                self.assertIsNone(problem_with(remedy))


NETPLAN = """\
    network:
      version: 2
      ethernets:
        enp1:
          dhcp4: true
          virtual-function-count: 4
          embedded-switch-mode: switchdev
          delay-virtual-functions-rebind: true
        enp2.5: {virtual-function-count: 2, mtu: 9000}
    """
PROFILE = """\
    [connection]
    id={id}
    {uuid}
    type=ethernet
    interface-name=enp1

    [ethernet]

    [sriov]
    {vfs}

    [ipv4]
    method=auto
    """
UUID = "0f5e9a3c-1111-4222-8333-944455566688"


class Host:
    """A directory tree with the files of another program, and that program for it."""

    def __init__(self, case):
        self.tree = Path(tempfile.mkdtemp())
        case.addCleanup(shutil.rmtree, self.tree)
        self.case = case
        (self.tree / "sys/bus/pci/devices").mkdir(parents=True)
        self.shims = self.tree / "shims"
        self.shims.mkdir()
        netplan, nmcli = shutil.which("netplan"), shutil.which("nmcli")
        self.shim("netplan", f'command=$1; shift; exec {netplan} "$command" --root-dir {self.tree} "$@"')
        # nmcli changes files below /etc only through the daemon; offline it works on one profile.
        self.shim("nmcli", f"""
            [ "$1 $2 $5 $6" = "connection modify remove sriov" ] && [ $# = 6 ] || exit 2
            file=$(grep -lxF -e "$3=$4" {self.tree}/etc/NetworkManager/system-connections/*) || exit 10
            {nmcli} --offline connection modify remove sriov <"$file" >{self.tree}/new || exit 1
            cat {self.tree}/new >"$file"
            """)

    def shim(self, name, script):
        file = self.shims / name
        file.write_text("#!/bin/sh\n" + textwrap.dedent(script) + "\n", encoding="utf-8")
        file.chmod(0o755)

    def write(self, name, text):
        file = self.tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        file.chmod(0o600)
        return file

    def findings(self, key):
        result = subprocess.run([VFPASS, "--sysroot", str(self.tree), "doctor", "--json"], stdout=subprocess.PIPE, text=True)
        return [each for each in json.loads(result.stdout)["findings"] if each["key"] == key]

    def failed(self, key):
        found = [each for each in self.findings(key) if each["result"] == "failed"]
        self.case.assertEqual(1, len(found), self.findings(key))
        return found[0]

    def expect_passed(self, key, seen="none"):
        self.case.assertEqual([("passed", seen)], [(each["result"], each["seen"]) for each in self.findings(key)])

    def run(self, remedy):
        """Runs a remedy as printed, with the programs for this tree."""
        self.case.assertIsNone(problem_with(remedy))
        environment = {**os.environ, "PATH": f"{self.shims}:{os.environ['PATH']}"}
        result = subprocess.run(["sh", "-c", remedy], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.case.assertEqual(0, result.returncode, f"$ {remedy}\n{result.stdout}")

    def judge(self, *command, **options):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)

    def generate(self):
        return self.judge("netplan", "generate", "--root-dir", str(self.tree))

    def netplan(self, key):
        return self.judge("netplan", "get", "--root-dir", str(self.tree), key).stdout.strip().splitlines()[-1]


class OwnersJudge(unittest.TestCase):
    def test_the_owners_are_installed(self):
        for program in ("netplan", "nmcli", "systemd-analyze", "udevadm"):
            self.assertIsNotNone(shutil.which(program), f"{program} is missing: scripts/packages names its package")

    def test_netplan_keeps_all_other_settings(self):
        host = Host(self)
        host.write("etc/netplan/50 it's.yaml", NETPLAN)
        host.run(host.failed("netplan")["remedy"])
        self.assertEqual(0, host.generate().returncode, host.generate().stdout)
        host.expect_passed("netplan")
        self.assertEqual("true", host.netplan("ethernets.enp1.dhcp4"))
        self.assertEqual("9000", host.netplan(r"ethernets.enp2\.5.mtu"))
        for setting in ("virtual-function-count", "embedded-switch-mode", "delay-virtual-functions-rebind"):
            self.assertEqual("null", host.netplan(f"ethernets.enp1.{setting}"))

    def test_netplan_settings_in_several_files(self):
        host = Host(self)
        host.write("etc/netplan/50.yaml", "network: {version: 2, ethernets: {enp1: {dhcp4: true, virtual-function-count: 4}}}\n")
        host.write("etc/netplan/60.yaml", "network: {version: 2, ethernets: {enp1: {mtu: 9000, embedded-switch-mode: legacy}}}\n")
        host.run(host.findings("netplan")[0]["remedy"])
        self.assertEqual(0, host.generate().returncode, host.generate().stdout)
        host.expect_passed("netplan")
        self.assertEqual(["true", "9000"], [host.netplan("ethernets.enp1." + key) for key in ("dhcp4", "mtu")])

    def test_netplan_accepts_what_is_left_of_an_only_key(self):
        host = Host(self)
        text = "network:\n  version: 2\n  ethernets:\n    enp1:\n      virtual-function-count: 4\n"
        host.write("etc/netplan/50.yaml", text)
        host.write("etc/netplan/60.yaml", text.replace("enp1", "eth0").replace("virtual-function-count: 4", "dhcp4: true"))
        host.run(host.failed("netplan")["remedy"])
        self.assertEqual(0, host.generate().returncode, host.generate().stdout)
        host.expect_passed("netplan")
        self.assertEqual("true", host.netplan("ethernets.eth0.dhcp4"))
        # This is what deleting the line leaves, and netplan refuses it.
        host.write("etc/netplan/50.yaml", text.replace("      virtual-function-count: 4\n", ""))
        self.assertNotEqual(0, host.generate().returncode)

    def test_netplan_files_that_define_a_vf_by_its_link(self):
        host = Host(self)
        text = "network:\n  version: 2\n  ethernets:\n    enp1: {mtu: 9000}\n    vf0: {link: enp1, dhcp4: true}\n"
        file = host.write("etc/netplan/50.yaml", text)
        found = host.failed("netplan")
        self.assertIsNone(problem_with(found["remedy"]))
        self.assertIn("definition `vf0`", found["remedy"])
        file.write_text(text.replace("    vf0: {link: enp1, dhcp4: true}\n", ""), encoding="utf-8")
        self.assertEqual(0, host.generate().returncode, host.generate().stdout)
        host.expect_passed("netplan")

    def test_networkmanager_keeps_the_rest_of_a_profile(self):
        for uuid, vfs in (("uuid=" + UUID, "total-vfs=4\nvf.0=mac=02:00:00:00:00:01 spoof-check=true"), ("uuid=" + UUID, ""),
                          ("", "total-vfs=4")):
            with self.subTest(uuid=uuid, vfs=vfs):
                host = Host(self)
                file = host.write("etc/NetworkManager/system-connections/a b.nmconnection",
                                  textwrap.dedent(PROFILE).format(id="it's a $(pf)", uuid=uuid, vfs=vfs))
                host.run(host.failed("networkmanager-sriov")["remedy"])
                host.expect_passed("networkmanager-sriov")
                profile = file.read_text(encoding="utf-8")
                self.assertIn("interface-name=enp1", profile)
                self.assertIn("method=auto", profile)
                self.assertNotIn("sriov", profile)
                judged = subprocess.run(["nmcli", "--offline", "connection", "modify", "connection.autoconnect", "yes"],
                                        input=profile, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.assertEqual(0, judged.returncode, judged.stdout)

    def test_words_about_systemd_files_lead_to_valid_files(self):
        host = Host(self)
        text = "[Match]\nOriginalName=enp1\n\n[Link]\nName=enp1\nSR-IOVVirtualFunctions=2\n"
        sections = "\n[SR-IOV]\nVirtualFunction=0\nMACAddress=02:00:00:00:00:10\n\n[SR-IOV]\nVirtualFunction=1\nVLANId=5\n"
        file = host.write("etc/systemd/network/20.link", text + sections)
        self.assertIn("SR-IOVVirtualFunctions= from [Link] and all 2 [SR-IOV] sections with all keys below them",
                      host.failed("systemd-link")["remedy"])
        # Without the sections' names alone, a VF's address would become that of the PF: the check must still fail then.
        file.write_text(text + sections.replace("[SR-IOV]\n", "", 1), encoding="utf-8")
        host.failed("systemd-link")
        file.write_text(text.replace("SR-IOVVirtualFunctions=2\n", ""), encoding="utf-8")
        host.expect_passed("systemd-link")

    def follow(self, name, before, line, after):
        """Follows the words for a boot script: edits LINE of the file only."""
        host = Host(self)
        file = host.write(name, before)
        found = host.failed("boot-scripts")
        self.assertIsNone(problem_with(found["remedy"]))
        self.assertEqual("/" + name, found["subject"])
        self.assertIn(f"in line {line}", found["seen"])
        self.assertIn(f"in /{name}, remove ", found["remedy"])
        lines = textwrap.dedent(before).splitlines()
        lines[line - 1] = after
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        host.expect_passed("boot-scripts")
        return host, file

    def test_words_about_shell_scripts_lead_to_valid_scripts(self):
        script = "#!/bin/sh\nif [ \"$IFACE\" = enp1 ]; then\n  echo 8 > /sys/class/net/$IFACE/device/sriov_numvfs\nfi\n"
        host, file = self.follow("etc/network/if-up.d/vfs", script, 3, "  :")
        self.assertEqual(0, host.judge("sh", "-n", str(file)).returncode)
        file.write_text(script.replace("  echo 8 > /sys/class/net/$IFACE/device/sriov_numvfs\n", ""), encoding="utf-8")
        self.assertNotEqual(0, host.judge("sh", "-n", str(file)).returncode, "the reason for the word `:`")

    def test_words_about_units_lead_to_valid_units(self):
        unit = """\
            [Unit]
            Description=VFs
            [Service]
            Type=oneshot
            ExecStart=/bin/true
            ExecStartPost=/bin/sh -c 'echo 4 > /sys/class/net/enp1/device/sriov_numvfs'
            """
        host, file = self.follow("etc/systemd/system/vfs.service", unit, 6, "")
        judged = host.judge("systemd-analyze", "verify", "--man=no", str(file))
        self.assertEqual(0, judged.returncode, judged.stdout)

    def test_words_about_udev_rules_lead_to_valid_rules(self):
        rule = 'ACTION=="add", SUBSYSTEM=="net", NAME="pf0", \\\n  ATTR{device/sriov_numvfs}="4"\n'
        host, file = self.follow("etc/udev/rules.d/61.rules", rule, 2, "")
        if host.judge("udevadm", "verify", "--help").returncode == 0:  # systemd 254
            judged = host.judge("udevadm", "verify", str(file))
            self.assertEqual(0, judged.returncode, judged.stdout)

    def test_words_about_module_options_keep_the_others(self):
        host, file = self.follow("etc/modprobe.d/mlx4.conf", "options mlx4_core num_vfs=8 port_type_array=2,2 probe_vf=0\n", 1,
                                 "options mlx4_core port_type_array=2,2 probe_vf=0")
        self.assertIn("port_type_array=2,2", file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(argv=["remedies_test", *sys.argv[1:]])
