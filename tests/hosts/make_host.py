#!/usr/bin/env python3
"""make_host MACHINE FOLDER: writes a captured tree of a made-up host.

The machines are at the end. `functions-N` is any number of functions, for benchmarks. What is written
is what the kernel shows of PCI in sysfs, with configuration space as far as the PCI Express
capability, so that lspci and lstopo can read it, too.
"""

import os
import struct
import sys

ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0, 4, 5, 6
SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
H100 = dict(vendor=0x10DE, device=0x2330, subsystem=(0x10DE, 0x16C1), code=0x030200, driver="nvidia")
CX7 = dict(vendor=0x15B3, device=0x1021, subsystem=(0x15B3, 0x0038), code=0x020000, driver="mlx5_core")
CX7_IB = dict(CX7, code=0x020700)
B200 = dict(H100, device=0x2901, subsystem=(0x10DE, 0x1999))
NVSWITCH = dict(vendor=0x10DE, device=0x22A3, subsystem=(0x10DE, 0x1796), code=0x068000, driver="nvidia-nvswitch")
ROOT = dict(vendor=0x8086, device=0x352A, code=0x060400, driver="pcieport")


class Host:
    def __init__(self, folder):
        self.folder = folder
        self.group = 0
        self.netdevs = 0
        self.paths = {}
        for name in ("bus/pci/devices", "bus/pci/drivers", "kernel/iommu_groups"):
            os.makedirs(f"{folder}/sys/{name}", exist_ok=True)

    def write(self, name, content):
        path = f"{self.folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else (content + "\n").encode())

    def link(self, name, target):
        path = f"{self.folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(os.path.relpath(f"{self.folder}/{target}", os.path.dirname(path)), path)

    def processors(self, vendor, family, model, masks):
        self.write("proc/cpuinfo", f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\n"
                                   f"model\t\t: {model}\nmodel name\t: {vendor} CPU")
        for node, mask in enumerate(masks):
            self.write(f"sys/devices/system/node/node{node}/cpumap", mask)

    def function(self, parent, address, vendor, device, code, subsystem=(0, 0), driver="", kind=ENDPOINT,
                 best=(5, 16), now=None, node=0, buses=None):
        """`parent` is a root bus (pci0000:00) or a function's address; gives the address."""
        path = f"{self.paths.get(parent, 'sys/devices/' + parent)}/{address}"
        self.paths[address] = path
        now = now or best
        self.write(f"{path}/uevent", "".join([
            f"DRIVER={driver}\n" if driver else "", f"PCI_CLASS={code:X}\n", f"PCI_ID={vendor:04X}:{device:04X}\n",
            f"PCI_SUBSYS_ID={subsystem[0]:04X}:{subsystem[1]:04X}\n", f"PCI_SLOT_NAME={address}"]))
        for name, value in dict(vendor=f"0x{vendor:04x}", device=f"0x{device:04x}", irq="0",
                                subsystem_vendor=f"0x{subsystem[0]:04x}", subsystem_device=f"0x{subsystem[1]:04x}",
                                numa_node=str(node), driver_override="(null)",
                                resource="\n".join(["0x0000000000000000 " * 2 + "0x0000000000000000"] * 13),
                                current_link_speed=f"{SPEEDS[now[0]]} GT/s PCIe", current_link_width=str(now[1]),
                                max_link_speed=f"{SPEEDS[best[0]]} GT/s PCIe", max_link_width=str(best[1])).items():
            self.write(f"{path}/{name}", value)
        self.write(f"{path}/class", f"0x{code:06x}")
        self.write(f"{path}/config", config(vendor, device, code, subsystem, kind, best, now, buses))
        if code >> 16 == 3:  # registers, memory, more registers
            self.write(f"{path}/resource", "\n".join(
                ["0x0000030042000000 0x0000030042ffffff 0x000000000014220c", "0x" + "0" * 16 + (" 0x" + "0" * 16) * 2,
                 "0x0000030000000000 0x0000031fffffffff 0x000000000014220c"]))
        self.link(f"sys/bus/pci/devices/{address}", path)
        if driver:
            os.makedirs(f"{self.folder}/sys/bus/pci/drivers/{driver}", exist_ok=True)
            self.link(f"{path}/driver", f"sys/bus/pci/drivers/{driver}")
        self.link(f"sys/kernel/iommu_groups/{self.group}/devices/{address}", path)
        self.link(f"{path}/iommu_group", f"sys/kernel/iommu_groups/{self.group}")
        self.group += 1
        return address

    def root_port(self, bridge, slot, last, node=0):
        bus = int(bridge.split(":")[1], 16)
        return self.function(bridge, f"0000:{bus:02x}:{slot}", **ROOT, kind=ROOT_PORT, node=node, buses=(bus, *last))

    def netdev(self, address, name, kind=1, up=True):
        self.netdevs += 1
        path = f"{self.paths[address]}/net/{name}"
        for file, value in dict(ifindex=str(self.netdevs + 1), flags="0x1003" if up else "0x1002", type=str(kind)).items():
            self.write(f"{path}/{file}", value)

    def rdma(self, address, name, layer="Ethernet", state="4: ACTIVE", rate="400 Gb/sec (4X NDR)", guid=0):
        path = f"{self.paths[address]}/infiniband/{name}"
        text = f"{guid:016x}"
        for file, value in {"fw_ver": "28.39.2048", "node_guid": ":".join(text[i:i + 4] for i in range(0, 16, 4)),
                            "ports/1/state": state, "ports/1/link_layer": layer, "ports/1/rate": rate}.items():
            self.write(f"{path}/{file}", value)

    def serial(self, address, number, vendor_list=""):
        fields = b"PN" + bytes([5]) + b"MCX75" + b"SN" + bytes([len(number)]) + number.encode()
        if vendor_list:
            fields += b"VA" + bytes([len(vendor_list)]) + vendor_list.encode()
        name = b"ConnectX"
        self.write(f"{self.paths[address]}/vpd", b"\x82" + struct.pack("<H", len(name)) + name + b"\x90" +
                   struct.pack("<H", len(fields)) + fields + b"\x78")

    def sriov(self, pf, total, vfs=0, offset=2, driver="mlx5_core", code=0x020000, device=0x101E):
        path = self.paths[pf]
        for name, value in dict(sriov_totalvfs=total, sriov_numvfs=vfs, sriov_offset=offset, sriov_stride=1,
                                sriov_drivers_autoprobe=0).items():
            self.write(f"{path}/{name}", str(value))
        domain, bus, rest = pf.split(":")
        slot, function = rest.split(".")
        first = (int(bus, 16) << 8 | int(slot, 16) << 3 | int(function)) + offset
        parent = path.split("/")[-2]
        for index in range(vfs):
            number = first + index
            address = f"{domain}:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"
            self.function(parent, address, 0x15B3, device, code, (0x15B3, 0x0038), driver)
            self.link(f"{self.paths[address]}/physfn", path)
            self.link(f"{path}/virtfn{index}", self.paths[address])


def config(vendor, device, code, subsystem, kind, best, now, buses):
    """Header of type 0 or 1, a PCI Express capability at 0x60; for ports all 4096 bytes, with ACS as Linux sets
    it where an IOMMU is on."""
    data = bytearray(4096 if kind in (ROOT_PORT, DOWNSTREAM) else 256)
    if len(data) > 256:
        struct.pack_into("<HHHH", data, 0x100, 0x0D, 1, 0x5F, 0x1D)
    struct.pack_into("<HHHH", data, 0, vendor, device, 0x0006, 0x0010)
    struct.pack_into("<I", data, 8, code << 8)
    data[0x34] = 0x60
    if buses:
        data[0x0E] = 1
        data[0x18:0x1B] = bytes(buses)
    else:
        struct.pack_into("<HH", data, 0x2C, *subsystem)
    struct.pack_into("<BBH", data, 0x60, 0x10, 0, 2 | kind << 4)
    struct.pack_into("<I", data, 0x6C, best[0] | best[1] << 4)
    struct.pack_into("<H", data, 0x72, now[0] | now[1] << 4)
    return bytes(data)


def pex(host, parent, address, inner, kind, buses, node, best=(5, 16)):
    """A port of a Broadcom PEX 89000, which shows itself as a switch with switches below it."""
    return host.function(parent, address, 0x1000, 0xC030, 0x060400, (0x1000, 0x1003 if inner else 0x0072), "pcieport",
                         kind, best=best, node=node, buses=buses)


def h100(host):
    """8 GPUs and 16 NIC ports in pairs below one PEX chip each, as BM.GPU.H100.8 has them; 4 NVSwitches."""
    low, high = "00000000,000000ff,ffffffff,ffff0000,00000000,00ffffff,ffffffff", \
        "ffffffff,ffffff00,00000000,0000ffff,ffffffff,ff000000,00000000"
    host.processors("GenuineIntel", 6, 143, [low, high])
    names = [18, 26, 28, 30, 0, 8, 10, 12]
    for i, base in enumerate([0x08, 0x26, 0x3D, 0x54, 0x82, 0xA1, 0xB9, 0xD1]):
        node = i // 4
        port = host.root_port(f"pci0000:{base - 1:02x}", "01.0", (base, base + 7), node)
        outer = pex(host, port, f"0000:{base:02x}:00.0", False, UPSTREAM, (base - 1, base, base + 7), node, best=(2, 16))
        down = [pex(host, outer, f"0000:{base + 1:02x}:0{slot}.0", False, DOWNSTREAM, (base + 1, base + 2 + 3 * slot,
                base + 4 + 3 * slot), node) for slot in (0, 1)]
        nic = pex(host, down[0], f"0000:{base + 2:02x}:00.0", True, UPSTREAM, (base + 1, base + 3, base + 4), node)
        nic = pex(host, nic, f"0000:{base + 3:02x}:00.0", True, DOWNSTREAM, (base + 3, base + 4, base + 4), node)
        gpu = pex(host, down[1], f"0000:{base + 5:02x}:00.0", True, UPSTREAM, (base + 1, base + 6, base + 7), node)
        gpu = pex(host, gpu, f"0000:{base + 6:02x}:00.0", True, DOWNSTREAM, (base + 6, base + 7, base + 7), node)
        for function in (0, 1):
            pf = host.function(nic, f"0000:{base + 4:02x}:00.{function}", **CX7, node=node)
            host.netdev(pf, f"rdma{2 * i + function}")
            host.rdma(pf, f"mlx5_{names[i] + function}", rate="200 Gb/sec (4X HDR)", guid=0x946DAE0300507000 + 16 * i + function)
            host.serial(pf, f"MT23{i:04d}")
            host.sriov(pf, 16, 2 if function == 0 else 0, offset=2 if function == 0 else 17)
        host.function(gpu, f"0000:{base + 7:02x}:00.0", **H100, node=node)
    port = host.root_port("pci0000:16", "01.0", (0x17, 0x1D))
    up = pex(host, port, "0000:17:00.0", False, UPSTREAM, (0x17, 0x18, 0x1D), 0)
    for i in range(4):
        down = pex(host, up, f"0000:18:0{i}.0", False, DOWNSTREAM, (0x18, 0x1A + i, 0x1A + i), 0)
        host.function(down, f"0000:{0x1A + i:02x}:00.0", **NVSWITCH, best=(3, 2))


def two_sockets(host):
    """4 GPUs and 2 InfiniBand cards at root ports: no switch, so nothing is nearer than a host bridge."""
    host.processors("AuthenticAMD", 25, 17, ["0000ffff", "ffff0000"])
    for bridge, bus, node, what in (("00", 0x01, 0, "gpu"), ("00", 0x02, 0, "ib"), ("40", 0x41, 0, "gpu"),
                                    ("80", 0x81, 1, "gpu"), ("c0", 0xC1, 1, "gpu"), ("e0", 0xE1, 1, "ib")):
        slot = {0x02: "02.0"}.get(bus, "01.0")
        port = host.root_port(f"pci0000:{bridge}", slot, (bus, bus), node)
        if what == "gpu":
            host.function(port, f"0000:{bus:02x}:00.0", **H100, node=node)
        else:
            pf = host.function(port, f"0000:{bus:02x}:00.0", **CX7_IB, node=node)
            host.netdev(pf, f"ibp{bus}s0", kind=32)
            host.rdma(pf, f"mlx5_{node}", layer="InfiniBand", guid=0x946DAE0300600000 + node)
            host.sriov(pf, 8, 4, offset=1, code=0x020700, driver="vfio-pci")


def nic_alone(host):
    """One card and no GPU, on a board that tells no NUMA node; its link is narrower than it could be."""
    host.processors("GenuineIntel", 6, 85, ["000000ff"])
    port = host.root_port("pci0000:00", "01.0", (1, 1), -1)
    pf = host.function(port, "0000:01:00.0", **dict(CX7, device=0x101D), best=(4, 16), now=(3, 8), node=-1)
    host.netdev(pf, "enp1s0np0", up=False)
    host.rdma(pf, "mlx5_0", state="1: DOWN", rate="40 Gb/sec (4X QDR)", guid=0x1070FD0300112233)
    host.serial(pf, "MT2201X00001")
    host.sriov(pf, 8)


def many_vfs(host):
    """8 PFs with 128 VFs each, below switches with two of them and two GPUs."""
    host.processors("AuthenticAMD", 25, 1, ["00000000,ffffffff", "ffffffff,00000000"])
    for i in range(4):
        rack(host, i, pairs=2, vfs=128, node=i // 2)


def rack(host, number, pairs, vfs, node):
    """A host bridge in a domain of its own with one switch, GPUs and PFs below it."""
    domain = f"{number:04x}"
    bridge = f"pci{domain}:00"
    last = 2 + 3 * pairs
    port = host.function(bridge, f"{domain}:00:01.0", **ROOT, kind=ROOT_PORT, node=node, buses=(0, 1, last))
    switch = dict(vendor=0x11F8, device=0x4052, code=0x060400, driver="pcieport", node=node)
    up = host.function(port, f"{domain}:01:00.0", **switch, kind=UPSTREAM, buses=(1, 2, last))
    for i in range(pairs):
        bus = 3 + 3 * i
        down = [host.function(up, f"{domain}:02:{2 * i + j:02x}.0", **switch, kind=DOWNSTREAM,
                buses=(2, bus + j, bus + 2 * j)) for j in (0, 1)]
        host.function(down[0], f"{domain}:{bus:02x}:00.0", **H100, node=node)
        pf = host.function(down[1], f"{domain}:{bus + 1:02x}:00.0", **CX7, node=node)
        host.netdev(pf, f"ens{number}p{i}")
        host.rdma(pf, f"mlx5_{number * pairs + i}", guid=0x946DAE0300700000 + number * pairs + i)
        host.sriov(pf, max(vfs, 16), vfs, offset=8, driver="vfio-pci")


def functions(host, count):
    """About `count` functions, as hosts grow: more switches with a GPU and a PF each, VFs on every PF."""
    host.processors("AuthenticAMD", 25, 1, ["ffffffff"])
    per_rack = 64  # a root port, a switch with four ports, 2 GPUs, 2 PFs, 27 VFs on each
    for number in range(count // per_rack):
        rack(host, number, pairs=2, vfs=27, node=0)


def no_netdev(host):
    """PFs without netdev: InfiniBand without ib_ipoib, and without mlx5_ib, too; after a fatal firmware error; the second
    PF of a Socket Direct card, whose first one is 06:00.0; the last one is InfiniBand with OFED's files."""
    host.processors("GenuineIntel", 6, 143, ["0000ffff"])
    for bus, what in ((1, "ipoib"), (2, "mlx5_ib"), (3, "error"), (6, "first"), (7, "second"), (8, "ofed")):
        infiniband = what in ("ipoib", "mlx5_ib", "ofed")
        port = host.root_port("pci0000:00", f"{bus:02x}.0", (bus, bus))
        pf = host.function(port, f"0000:{bus:02x}:00.0", **(CX7_IB if infiniband else CX7))
        host.serial(pf, "MT2301X00006" if what in ("first", "second") else f"MT2301X{bus:05d}")
        if what == "first":
            host.netdev(pf, "ens6np0")
        if what not in ("mlx5_ib", "error"):
            host.rdma(pf, f"mlx5_{bus}", layer="InfiniBand" if infiniband else "Ethernet")
        host.sriov(pf, 8, offset=1)
        if what == "ofed":
            os.makedirs(f"{host.folder}/{host.paths[pf]}/sriov", exist_ok=True)


def bonded(host):
    """Two cards with two ports each, each pair below a bond. The first is a RoCE LAG, whose RDMA device rdma-core has
    renamed; the ports of the second have an RDMA device each."""
    host.processors("GenuineIntel", 6, 143, ["0000ffff"])
    for bus in (1, 2):
        port = host.root_port("pci0000:00", f"{bus:02x}.0", (bus, bus))
        bond = f"sys/devices/virtual/net/bond{bus}"
        host.write(f"{bond}/bonding/slaves", f"ens{bus}f0np0 ens{bus}f1np1")
        for function in (0, 1):
            pf = host.function(port, f"0000:{bus:02x}:00.{function}", **CX7)
            name = f"ens{bus}f{function}np{function}"
            host.serial(pf, f"MT2301X{bus:05d}")
            host.netdev(pf, name)
            host.link(f"{host.paths[pf]}/net/{name}/master", bond)
            host.link(f"{host.paths[pf]}/net/{name}/upper_bond{bus}", bond)
            if function == 0 or bus == 2:
                host.rdma(pf, f"rocep{bus}s0f{function}")
            host.sriov(pf, 8, offset=2 + 8 * function)


def hgx_b200(host):
    """8 GPUs, each with an InfiniBand NIC at one switch, and the board's ConnectX-7 for NVLink management: 4 functions
    without SR-IOV, which only the VPD tells from NICs."""
    host.processors("GenuineIntel", 6, 207, ["0000ffff", "ffff0000"])
    port = host.root_port("pci0000:00", "01.0", (0x05, 0x05))
    for function in range(4):
        manager = host.function(port, f"0000:05:00.{function}", **CX7_IB, best=(3, 4))
        host.rdma(manager, f"mlx5_{function}", layer="InfiniBand", guid=0xCC40F30300270000 + function)
        host.serial(manager, "MT2500000001", "MLX:MN=MLNX:CSKU=V2:UUID=V3:PCI=V0:MODL=C7:SMDL=SW_MNG")
    switch = dict(vendor=0x11F8, device=0x4052, code=0x060400, driver="pcieport")
    for i, base in enumerate([0x14, 0x24, 0x34, 0x44, 0x94, 0xA4, 0xB4, 0xC4]):
        node = i // 4
        port = host.root_port(f"pci0000:{base:02x}", "01.0", (base + 1, base + 4), node)
        up = host.function(port, f"0000:{base + 1:02x}:00.0", **switch, kind=UPSTREAM, node=node,
                           buses=(base + 1, base + 2, base + 4))
        down = [host.function(up, f"0000:{base + 2:02x}:0{slot}.0", **switch, kind=DOWNSTREAM, node=node,
                              buses=(base + 2, base + 3 + slot, base + 3 + slot)) for slot in (0, 1)]
        pf = host.function(down[0], f"0000:{base + 3:02x}:00.0", **CX7_IB, node=node)
        host.netdev(pf, f"ibp{base + 3}s0", kind=32)
        host.rdma(pf, f"mlx5_{4 + i}", layer="InfiniBand", guid=0x946DAE0300800000 + i)
        host.serial(pf, f"MT24{i:04d}", "MLX:MN=MLNX:CSKU=V2:UUID=V3:PCI=V0:MODL=C7")
        host.sriov(pf, 16, offset=1)
        host.function(down[1], f"0000:{base + 4:02x}:00.0", **B200, node=node)


def vpi(host):
    """A GPU and a VPI card at one root port: port 1 is Ethernet, port 2 InfiniBand, 4 VFs each."""
    host.processors("GenuineIntel", 6, 143, ["0000ffff"])
    port = host.root_port("pci0000:18", "01.0", (0x19, 0x1A))
    host.function(port, "0000:19:00.0", **H100)
    for function, (kind, layer) in enumerate(((CX7, "Ethernet"), (CX7_IB, "InfiniBand"))):
        pf = host.function(port, f"0000:1a:00.{function}", **kind)
        host.netdev(pf, ("ens1f0np0", "ibp26s0f1")[function], kind=(1, 32)[function])
        host.rdma(pf, f"mlx5_{function}", layer=layer)
        host.sriov(pf, 4, 4, offset=2 + 4 * function, driver="vfio-pci", code=(0x020000, 0x020700)[function])


def sriov_off(host):
    """A GPU and a NIC whose firmware has SR-IOV off."""
    host.processors("GenuineIntel", 6, 143, ["0000ffff"])
    port = host.root_port("pci0000:10", "01.0", (0x11, 0x12))
    host.function(port, "0000:11:00.0", **H100)
    pf = host.function(port, "0000:12:00.0", **CX7_IB)
    host.netdev(pf, "ibp18s0", kind=32)
    host.rdma(pf, "mlx5_0", layer="InfiniBand")


MACHINES = {"h100-8": h100, "two-sockets": two_sockets, "nic-alone": nic_alone, "many-vfs": many_vfs,
            "no-netdev": no_netdev, "bonded": bonded, "hgx-b200": hgx_b200, "vpi": vpi, "sriov-off": sriov_off}


def main():
    machine, folder = sys.argv[1:]
    host = Host(os.path.realpath(folder))
    if machine.startswith("functions-"):
        functions(host, int(machine.removeprefix("functions-")))
    else:
        MACHINES[machine](host)


if __name__ == "__main__":
    main()
