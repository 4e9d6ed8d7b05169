"""What a step of a remedy does to a Machine: the words and commands of doctor's remedies, one rule for each kind."""

import os
import re
import subprocess

from machine import GRUB, NIC, NotUnderstood, make_host, parts_of

NETDEV = "ens0p0"


def set_parameter(machine, value, file):
    """The kernel shows a boolean parameter as Y or N, and the chosen one of several words in brackets."""
    if machine.read(file).count("["):
        value = machine.read(file).replace("[", "").replace("]", "").replace(value, f"[{value}]")
    machine.write(file, value)


def add_argument(machine, argument):
    text = machine.read(GRUB).splitlines()
    assert text[-1].startswith("GRUB_CMDLINE_LINUX=")
    machine.write(GRUB, "\n".join([*text[:-1], text[-1].removesuffix('"') + f" {argument}\""]))


def remove_argument(machine, argument):
    before = machine.read(GRUB)
    machine.write(GRUB, re.sub(rf" ?(?<=[ \"]){re.escape(argument)}(?=[ \"])", "", before))
    assert machine.read(GRUB) != before, f"{argument} is no argument of the kernel"


def remove_line(machine, file, what, line):
    lines = machine.path(file).read_text(encoding="utf-8").splitlines()
    assert what in lines[int(line) - 1], f"line {line} of {file} has no {what}"
    rest = [each for number, each in enumerate(lines, 1) if number != int(line)]
    machine.write(file, "\n".join(rest))


def remove_section(machine, file, key, section):
    """Removes KEY= from its section, and each SECTION with all keys below it, as the words for systemd say."""
    kept, inside = [], False
    for line in machine.read(file).splitlines():
        inside = line == f"[{section}]" if line.startswith("[") else inside
        if not inside and not (key and line.startswith(key)):
            kept.append(line)
    machine.write(file, "\n".join(kept))


def set_in_file(machine, file, key, value):
    lines = [each for each in machine.read(file).splitlines() if not each.startswith(key + " ")]
    machine.write(file, "\n".join([*lines, f"{key} {value}"]))


def write_policy(machine, key, value):
    """host.yaml of the tests has one PF, and each of its keys on a line."""
    lines = [each for each in machine.read("etc/vfpass/host.yaml").splitlines() if f" {key}:" not in each]
    machine.write("etc/vfpass/host.yaml", "\n".join([*lines, f"    {key}: {value}"]))


def apply_policy(machine):
    """As `vfpass host apply` on a host without VMs."""
    policy = dict(re.findall(r"^    ([\w-]+): (\S+)$", machine.read("etc/vfpass/host.yaml"), re.MULTILINE))
    if mode := policy.get("embedded-switch-mode"):
        machine.write(f"vfpass/devlink/{NIC}/eswitch-mode", mode)
    if count := policy.get("virtual-function-count"):
        create_vfs(machine, int(count))


def create_vfs(machine, count):
    hosts = make_host()
    host = object.__new__(hosts.Host)
    host.folder, host.group, host.netdevs = str(machine.folder), 200, 0
    host.paths = {NIC: str(machine.device(NIC))}
    for link in sorted(machine.path(machine.device(NIC)).glob("virtfn*")):
        address = link.resolve().name
        machine.remove(machine.device(address))
        machine.path(f"sys/bus/pci/devices/{address}").unlink()
        link.unlink()
    host.sriov(NIC, int(machine.read(machine.device(NIC) / "sriov_totalvfs")), count, offset=8, driver="vfio-pci")
    machine.enable_ats()


def burn_newest(machine):
    file = machine.device(NIC) / "infiniband/mlx5_0/fw_ver"
    machine.write(file, machine.read(file).split(".")[0] + ".48.1000")


def bring_up(machine, _):
    machine.write(machine.device(NIC) / f"net/{NETDEV}/flags", "0x1003")
    machine.write(machine.device(NIC) / "infiniband/mlx5_0/ports/1/state", "4: ACTIVE")


def run_in_tree(machine, command):
    """A command that writes files, with the tree's directories in place of this machine's."""
    script = re.sub(r"(?<= )/(?=(etc|sys|proc)/)", f"{machine.folder}/", command)
    subprocess.run(["sh", "-c", script], check=True, env={**os.environ, "LC_ALL": "C"})


def add_symbolic_link(machine, source, folder):
    text = next((path for path in (machine.path(source), machine.path("usr/share/vfpass/network/95-vfpass-vf.rules"))
                 if path.exists()), None)
    machine.write(f"{folder}/95-vfpass-vf.rules", text.read_text(encoding="utf-8"))


def enable(machine, unit):
    wants = machine.path("etc/systemd/system/multi-user.target.wants")
    wants.mkdir(parents=True, exist_ok=True)
    (wants / unit).symlink_to(f"/usr/lib/systemd/system/{unit}")


def set_pfc(machine, netdev, trust, priorities):
    bits = sum(int(bit) << number for number, bit in enumerate(priorities.split(",")))
    machine.write(f"vfpass/dcb/{netdev}", f"{bits} {int(trust == 'dscp')}")


def set_sysctl(machine, settings):
    for name, value in (each.split("=") for each in settings.split()):
        machine.write("proc/sys/" + (name if "/" in name else name.replace(".", "/")), value)


def install_hook(machine):
    hook = machine.path("etc/libvirt/hooks/qemu.d/vfpass")
    hook.parent.mkdir(parents=True, exist_ok=True)
    if not hook.is_symlink():
        hook.symlink_to("/usr/sbin/vfpass-qemu-hook")
    machine.write("usr/sbin/vfpass-qemu-hook", "")
    machine.write("vfpass/libvirt/hook-loaded", "vfpass hook install reloaded the daemon")


def install(machine, packages):
    if "libvirt" in packages:
        machine.write("usr/sbin/libvirtd", "")


def rebuild_initramfs(machine):
    """The next boot takes the modules of the running system, here all of the kernel's own."""
    machine.write("sys/module/mlx5_core/taint", machine.read("sys/module/mlx5_ib/taint"))


def enrol_key(machine):
    machine.write("sys/module/nvidia/taint", "PO")


def nothing(*_):
    """A step that only shows something, or that needs nothing in the tree: the next boot reads the files."""


def allow(*switches):
    return lambda machine, *_: machine.firmware_setup.update(switches)


RULES = (
    (r"apt install (.*)", install),
    (r"vfpass hook install", install_hook),
    (r"(?:run )?update-initramfs -u -k all, which may hold a module of the other release", rebuild_initramfs),
    (r"if that does not help, reinstall OFED for this kernel", nothing),
    (r"mokutil --import /var/lib/dkms/mok.pub", nothing),
    (r"reboot and enrol the key", enrol_key),
    (r"run modprobe (\w+), and install rdma-core, whose .*", lambda machine, module: machine.load(module)),
    (r"modprobe -r (\w+)", lambda machine, module: machine.remove(f"sys/module/{module}")),
    (r"(?:run )?modprobe (\w+)", lambda machine, module: machine.load(module)),
    (r"echo (\w+) > (/sys/\S+)", set_parameter),
    (r"(echo [\w ]+ >> /etc/modprobe.d/vfpass\S+)", lambda machine, command: (
        machine.path("etc/modprobe.d").mkdir(parents=True, exist_ok=True), run_in_tree(machine, command))),
    (r"(mkdir -p /etc/\S+|printf '.*' > /etc/\S+)", run_in_tree),
    (r"ln -s (\S+) (/etc/\S+?)/?", add_symbolic_link),
    (r"mstconfig -d (\S+) set (.*)", lambda machine, card, settings: machine.mstconfig(card, settings)),
    (r"mstflint -d \S+ query", nothing),
    (r"burn the newest firmware for that PSID", burn_newest),
    (r"power-cycle the machine(?:, also if .*)?", lambda machine: machine.power_cycle()),
    (r"reboot|run update-grub|update-grub|run update-initramfs -u -k all|update-initramfs -u -k all", lambda machine: machine.boot()),
    (r"append this line to /etc/default/grub: (.*)", lambda machine, line: machine.write(GRUB, f"{machine.read(GRUB)}\n{line}")),
    (r"add (\S+) to (?:GRUB_CMDLINE_LINUX in /etc/default/grub|the kernel command line)", add_argument),
    (r"remove (\S+) from (?:the kernel command line|GRUB_CMDLINE_LINUX or GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub)",
     remove_argument),
    (r"enable VT-x or SVM in the firmware", allow("virtualization")),
    (r"(?:\S+ is set already: )?enable VT-d in the firmware", allow("iommu", "remapping")),
    (r"enable the IOMMU .* in the firmware", allow("iommu", "remapping")),
    (r"enable interrupt remapping \(x2APIC, VT-d\) in the firmware", allow("iommu", "remapping")),
    (r"enable Above 4G Decoding and Resizable BAR in the firmware", allow("above 4g")),
    (r"enable SR-IOV and Above 4G Decoding in the system's firmware \(BIOS\)", lambda machine: (
        machine.firmware_setup.update({"sriov", "above 4g"}), machine.boot())),
    (r"if they are enabled, .*", nothing),
    (r"make the onboard graphics primary in the firmware", allow("onboard graphics")),
    (r".*: enable SR-IOV in the system's firmware \(BIOS\)", allow("sriov")),
    (r"remove (\S+) from the options of \w+ in (/etc/\S+)", lambda machine, option, file: machine.write(
        file, machine.read(file).replace(" " + option, ""))),
    (r"remove the line (\S+) from (/etc/\S+)", lambda machine, text, file: machine.write(
        file, "\n".join(each for each in machine.read(file).splitlines() if each != text))),
    (r"in (/\S+), remove (\S+?) in line (\d+)(?: and keep .*)?(?:, and the whole rule .*)?", remove_line),
    (r"in (/\S+), remove (\S+?) from \[Link\] and all \d+ \[(SR-IOV)\] sections with all keys below them", remove_section),
    (r"in (/\S+), set (\S+) (\S+)", set_in_file),
    (r"with PF_NUM_OF_VF_VALID=1 the card ignores NUM_OF_VFS: see mstconfig .* query .*", nothing),
    (r"(?:the command : in its place .*|udevadm control --reload|(?:run )?systemctl daemon-reload|systemctl restart \S+"
     r"|rebuild the initramfs if it contains this module)", nothing),
    (r"needs Linux .*(?:boot a newer kernel|check or change the kernel first).*", lambda machine: machine.write(
        "proc/sys/kernel/osrelease", "6.17.4-amd64")),
    (r"set ([\w-]+): (\S+) for (?:this PF|PF \S+) in host\.yaml(?:, detach all VMs of this PF)?", write_policy),
    (r"(?:run )?vfpass host apply", apply_policy),
    (r"ip link set dev (\S+) up", bring_up),
    (r"ip link set dev (\S+) mtu (\d+)", lambda machine, netdev, mtu: machine.write(machine.device(NIC) / f"net/{netdev}/mtu", mtu)),
    (r"sysctl -w (.*)", set_sysctl),
    (r"mlnx_qos -i (\S+) --trust (\w+) --pfc (\S+)", set_pfc),
    (r"enable the same priority on the switch", nothing),
    (r"systemctl enable --now (\S+)", enable),
    (r"install a newer libvirt", lambda machine: machine.write("vfpass/libvirt/versions", "11.3.0 10.0.0")),
    (r"reinstall the GPU driver .*", lambda machine: machine.write("sys/kernel/mm/memory_peers/nv_mem/version", "580.95.05")),
    (r"set LimitMEMLOCK=infinity with systemctl edit (\w+), then restart it", lambda machine, daemon: machine.write(
        "vfpass/libvirt/memory-lock", f"{daemon} unlimited")),
    (r"set LimitMEMLOCK=infinity with systemctl edit (\w+)", lambda machine, daemon: machine.write(
        "vfpass/libvirt/memory-lock", f"{daemon} unlimited")),
    (r"restart it", nothing),
    (r"list (\S+) under functions: of the same mapping: .*", nothing),
)


def follow(machine, remedy):
    """Does what a remedy says, step by step."""
    for part in parts_of(remedy):
        for pattern, rule in RULES:
            if match := re.fullmatch(pattern, part):
                rule(machine, *match.groups())
                break
        else:
            raise NotUnderstood(f"{part!r} of {remedy!r}")
