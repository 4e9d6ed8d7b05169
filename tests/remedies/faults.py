"""Faults of a host, by the check of doctor that finds them: each changes a healthy Machine."""

import os
import re
from pathlib import Path

from machine import CHECKOUT, GPU, GPU_PORT, NIC, NIC_PORT, make_host
from steps import NETDEV

MAPPING = "version: 1\nvm: 4dea22b3-1d52-d8f3-2516-782e98ab3fa0\nvfs:\n  - name: rail0\n    pf: {{pci: \"" + NIC + "\"}}\n    {}\n"
VF_BAR_WITHOUT_ADDRESS = "0x0 0x0 0x0\n" * 7 + "0x0000000000000000 0x00000000ffffffff 0x000000002014220c"
POLICY = 'version: 1\npfs:\n  - pf: {pci: "' + NIC + '"}\n'


def mapping(text):
    return lambda machine: machine.write("etc/vfpass/vms/train0.yaml", MAPPING.format(text))


def file(name, text):
    return lambda machine: machine.write(name, text)


def nic_file(name, text):
    return lambda machine: machine.write(machine.device(NIC) / name, text)


def gpu_file(name, text):
    return lambda machine: machine.write(machine.device(GPU) / name, text)


def firmware(**settings):
    return lambda machine: machine.set_firmware(**{name: (value, value) for name, value in settings.items()})


def without(*switches):
    """The same host with these settings of the system's firmware off, after a boot."""
    def change(machine):
        machine.firmware_setup -= set(switches)
        machine.boot()
    return change


def arguments(text):
    def change(machine):
        machine.write("etc/default/grub", f'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="{text}"')
        machine.boot()
    return change


def both(*changes):
    def change(machine):
        for each in changes:
            each(machine)
    return change


def without_flags(machine):
    machine.firmware_setup.discard("virtualization")
    machine.write("proc/cpuinfo", machine.read("proc/cpuinfo").replace(" vmx", ""))


def before_vfs(machine):
    """The PF has no VFs yet."""
    for link in sorted(machine.path(machine.device(NIC)).glob("virtfn*")):
        address = link.resolve().name
        machine.remove(machine.device(address))
        machine.path(f"sys/bus/pci/devices/{address}").unlink()
        link.unlink()
    machine.write(machine.device(NIC) / "sriov_numvfs", "0")


def without_vfs(machine):
    """The PF has no SR-IOV capability, and so none of its files."""
    before_vfs(machine)
    for name in machine.path(machine.device(NIC)).glob("sriov_*"):
        name.unlink()
    machine.boot()


def ports(gpu, nic):
    def change(machine):
        machine.acs(GPU_PORT, gpu)
        machine.acs(NIC_PORT, nic)
        machine.boot()
    return change


def bluefield(machine):
    name = machine.device(NIC) / "uevent"
    machine.write(name, machine.read(name).replace("15B3:1021", "15B3:A2DC"))


def infiniband(machine):
    """The card's port after a change of its type."""
    firmware(LINK_TYPE_P1="IB(1)")(machine)
    machine.power_cycle()


def without_netdev(machine):
    infiniband(machine)
    machine.remove(machine.device(NIC) / "net")
    machine.load("mlx5_ib")


def second_port(machine):
    """Another RoCE port of the card, which is up, and ARP settings that leave the ports mixed."""
    hosts = make_host()
    host = object.__new__(hosts.Host)
    host.folder, host.group, host.netdevs = str(machine.folder), 300, 5
    host.paths = {NIC_PORT: str(machine.device(NIC_PORT))}
    pf = host.function(NIC_PORT, "0000:04:00.1", **hosts.CX7)
    host.netdev(pf, "ens0p1")
    host.rdma(pf, "mlx5_1", guid=0x946DAE0300700009)
    machine.write(machine.device(pf) / "infiniband/mlx5_1/fw_ver", "28.46.3008")
    machine.boot()
    for name in ("all", NETDEV, "ens0p1"):
        for setting in ("arp_ignore", "arp_announce"):
            machine.write(f"proc/sys/net/ipv4/conf/{name}/{setting}", "0")


def bind(machine, device, driver):
    link = machine.path(device / "driver")
    link.unlink()
    folder = machine.path(f"sys/bus/pci/drivers/{driver}")
    folder.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(folder, link.parent))
    machine.write(device / "uevent", re.sub("DRIVER=.*", f"DRIVER={driver}", machine.read(device / "uevent")))


def nouveau(machine):
    bind(machine, machine.device(GPU), "nouveau")
    machine.load("nouveau")


def with_vf_netdev(machine):
    """NetworkManager runs, and the host's driver has a VF."""
    machine.write("etc/NetworkManager/NetworkManager.conf", "[main]\nplugins=keyfile")
    vf = Path(machine.path(machine.device(NIC) / "virtfn0").resolve()).relative_to(machine.folder.resolve())
    for name, value in dict(ifindex="9", flags="0x1002", type="1").items():
        machine.write(vf / "net/ens0v0" / name, value)
    bind(machine, vf, "mlx5_core")
    rules = CHECKOUT / "packaging/network/95-vfpass-vf.rules"
    machine.write("usr/share/vfpass/network/95-vfpass-vf.rules", rules.read_text(encoding="utf-8"))


def peer_memory_before_ofed(machine):
    machine.load("nvidia_peermem")
    for module in ("nvidia", "nvidia_peermem"):
        machine.write(f"sys/module/{module}/version", "580.95.05")
    machine.write("sys/kernel/mm/memory_peers/other/version", "1")


def unsigned_module(machine):
    machine.write("etc/default/grub", 'GRUB_CMDLINE_LINUX="intel_iommu=on module.sig_enforce"')
    machine.boot()
    machine.write("var/lib/dkms/nvidia/580.95.05/source", "")
    machine.write("sys/module/nvidia/taint", "OE")


FAULTS = {
    "iommu-group": {"merged": ports(0x00, 0x00)},
    "gpu-driver": {"nouveau": nouveau},
    "driver-order": {"built before OFED": peer_memory_before_ofed},
    "module-signatures": {"unsigned": unsigned_module},
    "ofed": {"two releases": both(file("sys/module/mlx5_core/version", "25.10"), file("sys/module/mlx5_core/taint", "O"))},
    "pf-netdev": {"without ib_ipoib": without_netdev},
    "link-type": {"Ethernet wanted": both(mapping("vlan: {id: 5}"), infiniband)},
    "arp": {"mixed": second_port},
    "libvirt": {"missing": lambda machine: (machine.write("etc/hostname", "x"), machine.remove("usr/sbin/libvirtd"))},
    "hook": {"missing": lambda machine: machine.remove("etc/libvirt/hooks/qemu.d/vfpass")},
    "hook-loaded": {"not since": file("vfpass/libvirt/hook-loaded",
                                         "the daemon started before there was any hook, and vfpass has not reloaded it")},
    "units": {"disabled": both(lambda machine: machine.write(
        "etc/vfpass/vms/train0.yaml", MAPPING.format("index: 0") + "verify: {on-start: report}\n"),
                               file("run/systemd/system/x", ""))},
    "networkmanager-dhcp": {"VF with a netdev": with_vf_netdev},
    "cpu-virtualization": {"off in the firmware": without_flags},
    "kvm": {"not loaded": lambda machine: machine.remove("sys/module/kvm_intel")},
    "iommu": {
        "off in the firmware": without("iommu", "remapping"),
        "off by an argument": arguments("intel_iommu=off"),
        "not on": both(arguments("quiet"), without("iommu", "remapping")),
    },
    "interrupt-remapping": {"off by an argument": arguments("intel_iommu=on intremap=off"),
                            "off in the firmware": without("remapping")},
    "unsafe-interrupts": {
        "now": file("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y"),
        "in a file": both(file("etc/modprobe.d/old.conf", "options vfio_iommu_type1 allow_unsafe_interrupts=1"), without()),
    },
    "no-iommu-mode": {"now": file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y"),
                      "in a file": both(file("etc/modprobe.d/old.conf", "options vfio enable_unsafe_noiommu_mode=1"), without())},
    "iommu-passthrough": {
        each: both(file("proc/sys/kernel/osrelease", "6.1.0-30-amd64"), arguments("intel_iommu=on " + each))
        for each in ("iommu=pt", "iommu.passthrough=1")},
    "sriov-firmware": {
        "off": both(firmware(SRIOV_EN="False(0)"), without_vfs),
        "no VFs": both(firmware(NUM_OF_VFS="0"), without_vfs),
        "off in the BIOS": both(without("sriov"), without_vfs),
        "limited for each PF": both(firmware(PF_NUM_OF_VF_VALID="True(1)", PF_NUM_OF_VF="0"), without_vfs),
        "pending": both(lambda machine: machine.set_firmware(SRIOV_EN=("False(0)", "True(1)")), without_vfs),
    },
    "vf-count": {"too few": both(mapping("index: 6"), file("etc/vfpass/host.yaml", POLICY + "    virtual-function-count: 4"))},
    "vf-space": {"no addresses": both(before_vfs, without("above 4g"), nic_file("resource", VF_BAR_WITHOUT_ADDRESS))},
    "vf-probing": {"off": both(mapping("managed: yes"), nic_file("sriov_drivers_autoprobe", "0"))},
    "firmware-settings": {"ATS": firmware(ATS_ENABLED="False(0)")},
    "dpu-mode": {"DPU mode": both(bluefield, firmware(INTERNAL_CPU_OFFLOAD_ENGINE="ENABLED(0)"),
                                  file(f"vfpass/devlink/{NIC}/eswitch-mode", "denied"))},
    "eswitch": {"switchdev": both(mapping("vlan: {id: 5}"), file("etc/vfpass/host.yaml", POLICY + "    up: true"),
                                  file(f"vfpass/devlink/{NIC}/eswitch-mode", "switchdev"))},
    "vf-migration": {"off": both(mapping("migration: vfio"), file("etc/vfpass/host.yaml", POLICY + "    embedded-switch-mode: switchdev"),
                                 file(f"vfpass/devlink/{NIC}/eswitch-mode", "switchdev"), file("vfpass/modules/mlx5_vfio_pci/state", "loaded"),
                                 firmware(VF_MIGRATION_MODE="DEVICE_DEFAULT(0)"))},
    "firmware-escape": {"old": nic_file("infiniband/mlx5_0/fw_ver", "28.39.2048")},
    "ats": {"off": both(firmware(ATS_ENABLED="False(0)"), lambda machine: machine.capabilities(NIC, {1: (0, 0)}))},
    "acs": {
        "old kernel": both(file("proc/sys/kernel/osrelease", "6.1.0-30-amd64"), ports(0x1D, 0x1D)),
        "not direct": ports(0x1D, 0x1D),
        "merged": ports(0x00, 0x00),
        "bare metal": ports(0x11, 0x11),
    },
    "gpu-bar": {"32 bits": both(without("above 4g"), gpu_file("resource", "0x90000000 0x90ffffff 0x40200\n0x0 0x0 0x0\n"
                                                                          "0xa0000000 0xdfffffff 0x42208"))},
    "gpu-console": {"primary": both(without("onboard graphics"), gpu_file("boot_vga", "1"))},
    "nv-peer-mem": {"loaded": lambda machine: machine.load("nv_peer_mem"),
                    "in a file": file("etc/modules-load.d/old.conf", "nv_peer_mem")},
    "pf-link": {"down": both(nic_file(f"net/{NETDEV}/flags", "0x1002"), nic_file("infiniband/mlx5_0/ports/1/state", "1: DOWN"))},
    "pf-mtu": {"small": both(mapping("guest: {mtu: 9000}"), nic_file(f"net/{NETDEV}/mtu", "1500"))},
    "flow-control": {"off": both(file(f"vfpass/dcb/{NETDEV}", "0 0"), nic_file(f"net/{NETDEV}/ecn/roce_np/enable/3", "0"),
                                 nic_file(f"net/{NETDEV}/ecn/roce_rp/enable/3", "0"))},
    "libvirt-version": {"old": file("vfpass/libvirt/versions", "6.0.0 4.2.1")},
    "memory-lock": {"limited": file("vfpass/libvirt/memory-lock", "libvirtd 67108864")},
    "driver-stop": {"can be stopped": file("usr/lib/systemd/system/openibd.service", "[Unit]")},
    "dma-mappings": {"few": file("sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "128")},
    "hugepages": {"never": file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")},
    "systemd-link": {"sections": file("etc/systemd/network/10.link", "[Match]\nPath=x\n[Link]\nSR-IOVVirtualFunctions=4\n"
                                      "[SR-IOV]\nVirtualFunction=0\nVLANId=5\n[SR-IOV]\nVirtualFunction=1\nVLANId=6")},
    "boot-scripts": {
        "rc.local": file("etc/rc.local", "#!/bin/sh\necho 4 > /sys/class/net/ens0p0/device/sriov_numvfs"),
        "unit": file("etc/systemd/system/vfs.service", "[Service]\nExecStart=/bin/sh -c 'echo 4 > "
                     "/sys/class/net/ens0p0/device/sriov_numvfs'"),
        "udev": file("etc/udev/rules.d/60.rules", 'ACTION=="add", ATTR{device/sriov_numvfs}="4"'),
        "modprobe": file("etc/modprobe.d/vfs.conf", "options mlx4_core num_vfs=8"),
    },
    "opensm": {"off": both(firmware(LINK_TYPE_P1="IB(1)"), lambda machine: machine.power_cycle(),
                           file("etc/opensm/opensm.conf", "virt_enabled 0"), file("vfpass/opensm", "default"))},
}


# Checks whose remedies are tried by another test, or that no remedy ends, and why.
ELSEWHERE = {
    "mapped-devices": ("tests/cli/cases/doctor-device", "the remedy shows the devices that exist; which one to name is the user's choice"),
    "gpu-reset": ("tests/unit/doctor/gpu_test.cpp", "no setting gives a GPU a reset method"),
    "gpu-nvlink": ("tests/unit/doctor/gpu_test.cpp", "the mapping has to say how GPUs get their NVLink"),
    "kernel-log": ("tests/unit/doctor/kernel_lines_test.cpp", "the remedy shows the log, which only the next boot empties"),
    "quarantine": ("tests/unit/doctor/quarantine_test.cpp", "somebody has to find the cause before the device is released"),
    "pcie-link": ("tests/unit/doctor/pcie_link_test.cpp", "somebody has to reseat the card"),
    "other-nics": ("tests/unit/doctor/ats_test.cpp", "it only says which checks do not apply"),
    "vf-ats": ("tests/unit/doctor/ats_test.cpp", "the remedy shows the kernel's reason; its IOMMU driver enables ATS"),
    "qemu-version": ("tests/unit/doctor/daemon_test.cpp", "it only reports, unless a VF is to migrate"),
    "netplan": ("tests/cli/remedies_test.py", "netplan itself changes its files"),
    "networkmanager-sriov": ("tests/cli/remedies_test.py", "nmcli changes its profiles"),
    "guest-memory-lock": ("tests/lab/doctor.sh", "needs a domain of libvirt"),
    "confidential-guest": ("tests/unit/doctor/guest_test.cpp", "needs a domain of libvirt"),
    "iommufd": ("tests/unit/plan/choose_backend_test.cpp", "needs a mapping or domain that requests it"),
    "peer-mapping": ("tests/unit/doctor/libvirt_test.cpp", "needs a domain of libvirt"),
    "guest-nccl-topology": ("tests/unit/doctor/guest_test.cpp", "needs a guest"),
}
