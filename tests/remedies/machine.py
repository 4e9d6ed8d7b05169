"""A host as a directory tree: what doctor reads, and what happens when somebody follows a remedy.

Machine knows programs, firmware and the boot, but no check of doctor: it does what the text says. A text that it does
not understand is an error. The tree is that of a snapshot (docs/snapshots.md); what a booting kernel derives from its
arguments, its modules' options and the cards' firmware is derived in boot().
"""

import importlib.util
import os
import re
import shlex
import shutil
import struct
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
ACS, ATS = 0x0D, 0x0F
NIC, GPU, GPU_PORT, NIC_PORT = "0000:04:00.0", "0000:03:00.0", "0000:02:00.0", "0000:02:01.0"
GROUPS = "sys/kernel/iommu_groups"
GRUB = "etc/default/grub"


def make_host():
    spec = importlib.util.spec_from_file_location("make_host", CHECKOUT / "tests/hosts/make_host.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NotUnderstood(Exception):
    """A part of a remedy that nobody could follow."""


def parts_of(remedy):
    """The steps of a remedy, in order. Setting up the firmware ends with a boot. A remark after `  #` and alternatives after
    `; or` are no steps."""
    text = re.split(r"  #|; or ", remedy.replace("`", ""))[0].replace(": systemctl reboot --firmware-setup", ", then reboot")
    # The semicolons of pci=config_acs= and of a quoted text separate nothing.
    kept = re.sub(r"\"[^\"]*\"|(?<!\w)'[^']*'|GRUB_CMDLINE\S*=\".*?\\\"\"", lambda match: match[0].replace(";", "\0").replace(",", "\1"), text)
    parts = re.split(r"; then (?:run )?|, then (?:run )?|; (?!or )| && |, and (?=reboot)| and (?=reboot\b)", kept)
    return [each.replace("\0", ";").replace("\1", ",").strip(" ,") for each in parts if each.strip(" ,")]


class Machine:
    """Identifiers in brackets are those of the tree in `folder`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.firmware_setup = {"virtualization", "iommu", "remapping", "sriov", "above 4g", "onboard graphics"}

    # --- files

    def path(self, name):
        return self.folder / str(name).lstrip("/")

    def read(self, name, default=""):
        return self.path(name).read_text(encoding="utf-8").strip() if self.path(name).exists() else default

    def write(self, name, text):
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")

    def remove(self, name):
        path = self.path(name)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def device(self, address):
        return self.path(f"sys/bus/pci/devices/{address}").resolve().relative_to(self.folder.resolve())

    def config(self, address):
        return bytearray(self.path(self.device(address) / "config").read_bytes())

    def set_config(self, address, data):
        self.path(self.device(address) / "config").write_bytes(bytes(data))

    # --- a healthy host

    @classmethod
    def healthy(cls, folder):
        """A GPU and a PF with four VFs below one switch, on which no check fails."""
        hosts = make_host()
        host = hosts.Host(str(folder))
        host.processors("GenuineIntel", 6, 143, ["0000ffff"])
        hosts.rack(host, 0, pairs=1, vfs=4, node=0)
        self = cls(folder)
        self.write("proc/cpuinfo", self.read("proc/cpuinfo") + "\nflags\t\t: fpu vmx sse")
        self.write("etc/os-release", "ID=debian")
        self.write(GRUB, 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="intel_iommu=on"')
        self.write("proc/sys/kernel/osrelease", "6.17.4-amd64")
        for module in ("kvm", "kvm_intel", "vfio", "vfio_pci", "vfio_iommu_type1", "nvidia"):
            self.load(module)
        for module in ("mlx5_core", "mlx5_ib"):
            self.write(f"sys/module/{module}/taint", "")
        self.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
        self.write("vfpass/libvirt/versions", "10.0.0 8.2.2")
        self.write("vfpass/libvirt/memory-lock", "libvirtd raises")
        self.write("usr/sbin/libvirtd", "")
        self.write("vfpass/libvirt/hook-loaded", "vfpass hook install reloaded the daemon")
        self.write("usr/sbin/vfpass-qemu-hook", "")
        hook = self.path("etc/libvirt/hooks/qemu.d/vfpass")
        hook.parent.mkdir(parents=True)
        hook.symlink_to("/usr/sbin/vfpass-qemu-hook")
        self.write(self.device(NIC) / "infiniband/mlx5_0/fw_ver", "28.46.3008")
        self.write(self.device(GPU) / "reset_method", "flr bus")
        # A VF BAR with addresses.
        self.write(self.device(NIC) / "resource", "0x0 0x0 0x0\n" * 7 + "0x0000031000000000 0x00000310ffffffff 0x000000000014220c")
        self.write(self.device(GPU) / "boot_vga", "0")
        self.write("vfpass/devlink/0000:04:00.0/eswitch-mode", "legacy")
        self.write("vfpass/dcb/ens0p0", "8 1")
        self.set_firmware(SRIOV_EN=("True(1)", "True(1)"), NUM_OF_VFS=("16", "16"), ATS_ENABLED=("True(1)", "True(1)"),
                          LINK_TYPE_P1=("ETH(2)", "ETH(2)"))
        self.enable_ats()
        self.acs(NIC_PORT, 0x5D)
        self.boot()
        return self

    def capabilities(self, address, found):
        """Gives a function extended capabilities, with two words each."""
        data = self.config(address)[:256] + bytearray(4096 - 256)
        at = 0x100
        for number, (index, words) in enumerate(found.items()):
            following = at + 0x40 if number + 1 < len(found) else 0
            struct.pack_into("<HHHH", data, at, index, 1 | following << 4, *words)
            at += 0x40
        self.set_config(address, data)

    def enable_ats(self):
        """The PF has the capability, and its VFs have it enabled, as IOMMU drivers do."""
        self.capabilities(NIC, {ATS: (0, 0)})
        for link in self.path(self.device(NIC)).glob("virtfn*"):
            self.capabilities(link.resolve().name, {ATS: (0, 0x8000)})

    def acs(self, address, bits=None):
        """Sets or gets the enabled bits of a port, whose ACS capability is the first one."""
        data = self.config(address)
        if bits is not None:
            struct.pack_into("<H", data, 0x106, bits & struct.unpack_from("<H", data, 0x104)[0])
            self.set_config(address, data)
        return struct.unpack_from("<H", data, 0x106)[0]

    # --- programs

    def load(self, module, **parameters):
        if module == "ib_ipoib":
            self.add_netdev()
        self.write(f"sys/module/{module}/refcnt", "0")
        options = {}
        for file in sorted(self.path("etc/modprobe.d").glob("*.conf")):
            for line in file.read_text(encoding="utf-8").splitlines():
                if line.startswith(f"options {module} "):
                    options |= dict(each.split("=") for each in line.split()[2:])
        defaults = {"vfio": {"enable_unsafe_noiommu_mode": "N"},
                    "vfio_iommu_type1": {"allow_unsafe_interrupts": "N", "dma_entry_limit": "65535"}}
        for name, value in (defaults.get(module, {}) | options | parameters).items():
            self.write(f"sys/module/{module}/parameters/{name}", {"1": "Y"}.get(value, value))

    def add_netdev(self):
        """ib_ipoib's netdev of an InfiniBand port."""
        for name, value in dict(ifindex="2", flags="0x1003", type="32").items():
            self.write(self.device(NIC) / "net/ibp4s0" / name, value)

    def firmware(self):
        lines = self.read(f"vfpass/firmware/{NIC}").splitlines()
        return {name: (now, then) for name, now, then in (line.split() for line in lines)}

    def set_firmware(self, **settings):
        self.write(f"vfpass/firmware/{NIC}", "\n".join(
            f"{name} {now} {then}" for name, (now, then) in sorted((self.firmware() | settings).items())))

    def mstconfig(self, _, settings):
        known = self.firmware()
        names = {"1": "True(1)", "0": "False(0)"}
        for name, value in (each.split("=") for each in settings.split()):
            written = value if name.startswith(("NUM", "PF_NUM")) else \
                {"1": "IB(1)", "2": "ETH(2)"}[value] if name.startswith("LINK") else \
                {"1": "DISABLED(1)", "0": "ENABLED(0)"}[value] if name.startswith("INTERNAL") else \
                {"2": "MIGRATION_ENABLED(2)"}[value] if name == "VF_MIGRATION_MODE" else names[value]
            self.set_firmware(**{name: (known.get(name, ("False(0)", ""))[0], written)})

    def arguments(self):
        """The kernel's arguments at the next boot, as GRUB's two variables give them."""
        script = self.read(GRUB)
        values = {}
        for line in script.splitlines():
            name, _, text = line.partition("=")
            text = shlex.split(text)[0] if text else ""
            values[name] = re.sub(r"\$(\w+)", lambda match: values.get(match[1], ""), text)
        return shlex.split(f"{values.get('GRUB_CMDLINE_LINUX', '')} {values.get('GRUB_CMDLINE_LINUX_DEFAULT', '')}")

    # --- the next boot

    def boot(self):
        arguments = self.arguments()
        self.write("proc/cmdline", " ".join(arguments))
        self.boot_acs(arguments)
        self.boot_groups(arguments)
        remapped = "remapping" in self.firmware_setup and "intremap=off" not in arguments
        self.write("sys/kernel/irq/30/chip_name", "IR-PCI-MSI" if remapped else "PCI-MSI")
        for module in ("vfio", "vfio_iommu_type1"):
            if self.path(f"sys/module/{module}").exists():
                self.load(module)
        blacklist = "".join(file.read_text(encoding="utf-8") for file in sorted(self.path("etc/modprobe.d").glob("*.conf")))
        for module in re.findall(r"^blacklist (\S+)", blacklist, re.MULTILINE):
            self.unbind(module)
        if "virtualization" in self.firmware_setup and "vmx" not in self.read("proc/cpuinfo"):
            self.write("proc/cpuinfo", self.read("proc/cpuinfo").replace("flags\t\t:", "flags\t\t: vmx"))
        if "above 4g" in self.firmware_setup:
            self.write(self.device(GPU) / "resource", "0x0000030042000000 0x0000030042ffffff 0x000000000014220c\n"
                       "0x0 0x0 0x0\n0x0000030000000000 0x0000031fffffffff 0x000000000014220c")
            lines = self.read(self.device(NIC) / "resource").replace("0x000000002014220c", "0x000000000014220c")
            self.write(self.device(NIC) / "resource", lines.replace("0x0000000000000000 0x00000000ffffffff",
                                                                    "0x0000031000000000 0x00000310ffffffff"))
        if "onboard graphics" in self.firmware_setup:
            self.write(self.device(GPU) / "boot_vga", "0")

    def unbind(self, driver):
        for link in self.path("sys/bus/pci/devices").iterdir():
            bound = link.resolve() / "driver"
            if bound.is_symlink() and bound.resolve().name == driver:
                bound.unlink()
                name = self.device(link.name) / "uevent"
                self.write(name, self.read(name).replace(f"DRIVER={driver}\n", ""))
        if self.path(f"sys/module/{driver}").exists():
            self.remove(f"sys/module/{driver}")

    def boot_acs(self, arguments):
        """pci=config_acs=BITS@PORT;...: x leaves a bit (__pci_config_acs in the kernel's drivers/pci/pci.c)."""
        for text in (each.partition("config_acs=")[2] for each in arguments if "config_acs=" in each):
            for bits, port in (each.split("@") for each in text.split(";")):
                kept = int(bits.replace("1", "0").replace("x", "1"), 2)
                self.acs(port, self.acs(port) & kept | int(bits.replace("x", "0"), 2))

    def boot_groups(self, arguments):
        """A group for each function; functions below ports that do not redirect requests share one."""
        on = "iommu" in self.firmware_setup and "intel_iommu=off" not in arguments
        if self.path(GROUPS).exists():
            self.remove(GROUPS)
        self.path(GROUPS).mkdir(parents=True)
        identity = {"iommu=pt", "iommu.passthrough=1"} & set(arguments) and "iommu.passthrough=0" not in arguments
        shared = not (self.acs(GPU_PORT) & 0x04 and self.acs(NIC_PORT) & 0x04)
        for number, link in enumerate(sorted(self.path("sys/bus/pci/devices").iterdir())):
            group = 99 if shared and link.name.startswith(("0000:03", "0000:04")) else number
            target = link.resolve() / "iommu_group"
            if target.is_symlink():
                target.unlink()
            if on:
                members = self.path(f"{GROUPS}/{group}/devices")
                members.mkdir(parents=True, exist_ok=True)
                (members / link.name).symlink_to(Path("/" + str(self.device(link.name))))
                target.symlink_to(os.path.relpath(self.folder.resolve() / GROUPS / str(group), target.parent))
                self.write(f"{GROUPS}/{group}/type", "identity" if identity else "DMA-FQ")

    def power_cycle(self):
        self.set_firmware(**{name: (then, then) for name, (_, then) in self.firmware().items()})
        now = {name: value for name, (value, _) in self.firmware().items()}
        if now.get("ATS_ENABLED") == "True(1)":
            self.enable_ats()
        count = now.get("PF_NUM_OF_VF" if now.get("PF_NUM_OF_VF_VALID") == "True(1)" else "NUM_OF_VFS", "0")
        if now.get("SRIOV_EN") == "True(1)" and "sriov" in self.firmware_setup and count != "0":
            for name, value in dict(sriov_totalvfs=count, sriov_numvfs=self.read(self.device(NIC) / "sriov_numvfs", "0"),
                                    sriov_offset="8", sriov_stride="1", sriov_drivers_autoprobe="0").items():
                self.write(self.device(NIC) / name, value)
        layer = {"IB(1)": "InfiniBand", "ETH(2)": "Ethernet"}.get(now.get("LINK_TYPE_P1"))
        port = self.device(NIC) / "infiniband/mlx5_0/ports/1/link_layer"
        if layer and self.path(port).exists():
            self.write(port, layer)
            self.write(self.device(NIC) / "net/ens0p0/type", "32" if layer == "InfiniBand" else "1")
        if now.get("INTERNAL_CPU_OFFLOAD_ENGINE") == "DISABLED(1)":
            self.write("vfpass/devlink/0000:04:00.0/eswitch-mode", "legacy")
        self.boot()
