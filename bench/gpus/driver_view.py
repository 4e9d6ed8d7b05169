#!/usr/bin/env python3
"""driver_view.py TOPO.json: compares `vfpass topo --json` with what NVIDIA's driver reports.

Every pair of GPUs, and of GPU and NIC, is compared with `nvidia-smi topo -m`. That matrix shows NVLink instead of the
PCI Express path where there is one; then NVML is asked for the path. NUMA nodes are compared, and NVLinks are counted.
The exit status is 1 if anything differs, and 6 without the driver.
"""

import ctypes
import itertools
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field

# nvmlGpuTopologyLevel_t
LEVELS = {0: "X", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
# nvmlIntNvLinkDeviceType_t
REMOTE = {0: "GPU", 1: "processor", 2: "switch"}
WORD = re.compile(r"X|PIX|PXB|PHB|NODE|SYS|NV\d+")
LINKS_OF_A_GPU = 18  # NVML_NVLINK_MAX_LINKS


@dataclass
class Matrix:
    """`nvidia-smi topo -m`: the word of each pair of rows, and what else it says about each row."""
    words: dict = field(default_factory=dict)  # (row, column) -> "X", "PIX", "NV18", ...
    numa: dict = field(default_factory=dict)   # row -> NUMA node, or None where it is not known
    nics: dict = field(default_factory=dict)   # NIC0 -> mlx5_0


def fields(line):
    """The columns of a line. They are separated by one or more tabs."""
    return [each.strip() for each in line.split("\t") if each.strip()]


def numa_node(text):
    """`0` and, for the processors of several nodes, `0-1`, which names no single node; `N/A` on a machine without nodes."""
    return int(text) if text.isdigit() else None


def parse_matrix(text):
    """Parses the output of `nvidia-smi topo -m`. Raises ValueError for anything else."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    heads = [number for number, line in enumerate(lines) if fields(line)[:1] == ["GPU0"] and line[:1] in "\t "]
    if not heads:
        raise ValueError("no line of column heads")
    columns = fields(lines[heads[0]])
    devices = [each for each in columns if re.fullmatch(r"(GPU|NIC)\d+|mlx\d_\w+", each)]
    others = columns[len(devices):]
    matrix = Matrix()
    for line in lines[heads[0] + 1:]:
        row = fields(line)
        if not row or row[0] not in devices:
            break
        if not all(WORD.fullmatch(each) for each in row[1:1 + len(devices)]) or len(row) <= len(devices):
            raise ValueError(f"{row[0]}: not a distance for each of {len(devices)} devices: {line!r}")
        matrix.words.update({(row[0], column): word for column, word in zip(devices, row[1:])})
        further = dict(zip(others, row[1 + len(devices):]))
        matrix.numa[row[0]] = numa_node(further.get("NUMA Affinity", ""))
    if set(matrix.numa) != set(devices):
        raise ValueError(f"rows of {', '.join(sorted(set(devices) - set(matrix.numa)))} are missing")
    matrix.nics = dict(re.findall(r"^\s*(NIC\d+): (\S+)\s*$", text, re.MULTILINE))
    return matrix


def normal(address):
    """NVIDIA writes a PCI domain with eight digits, sysfs with four."""
    domain, rest = address.lower().split(":", 1)
    return f"{int(domain, 16):04x}:{rest}"


def our_distances(topo):
    """(address, address) -> word, in both orders."""
    pairs = [(each["gpu"], each["pf"], each["distance"]) for each in topo["distances"]]
    pairs += [(each["gpu"], each["other_gpu"], each["distance"]) for each in topo["gpu_distances"]]
    return {key: word for one, other, word in pairs for key in ((one, other), (other, one))}


def addresses_of(matrix, topo, gpus):
    """The address of each row; `gpus` has those of GPU0, GPU1, ..."""
    rdma = {device["name"]: function["address"] for function in topo["functions"] for device in function["rdma"]}
    found = {f"GPU{number}": address for number, address in enumerate(gpus)}
    for row in matrix.numa:
        name = matrix.nics.get(row, row)
        if name in rdma:
            found[row] = rdma[name]
    return found


def compare(matrix, topo, gpus, paths):
    """Returns the compared pairs as (row, row, their word, our word), and the rows as (row, their node, our node).

    `paths` has the driver's word for the PCI Express path of two GPUs, by their numbers; it replaces `NV18`. Pairs of
    two NICs have no distance in our output.
    """
    ours = our_distances(topo)
    addresses = addresses_of(matrix, topo, gpus)
    pairs = []
    for one, other in itertools.combinations(sorted(matrix.numa), 2):
        if not (one.startswith("GPU") or other.startswith("GPU")):
            continue
        word = matrix.words[one, other]
        if word.startswith("NV"):
            word = paths[int(one[3:]), int(other[3:])]
        pairs.append((one, other, word, ours.get((addresses.get(one), addresses.get(other)), "none")))
    known = [each["number"] for each in topo["processors"]["numa_nodes"]]
    # On a machine with one node the kernel need not name a device's; the driver then reports that node.
    only = known[0] if len(known) == 1 else None
    nodes = {each["address"]: only if each["numa_node"] is None else each["numa_node"] for each in topo["functions"]}
    return pairs, [(row, matrix.numa[row], nodes.get(addresses.get(row))) for row in sorted(matrix.numa)
                   if row.startswith("GPU")]


class Nvml:
    """The functions of libnvidia-ml that this program needs."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.call("nvmlInit_v2")

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name}: NVML error {status}")

    def device(self, address):
        handle = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByPciBusId_v2", address.encode(), ctypes.byref(handle))
        return handle

    def path(self, one, other):
        level = ctypes.c_int()
        self.call("nvmlDeviceGetTopologyCommonAncestor", self.device(one), self.device(other), ctypes.byref(level))
        return LEVELS.get(level.value, f"level {level.value}")

    def active_links(self, address):
        """What the active NVLinks of a GPU end at, one item for each link."""
        ends = []
        for link in range(LINKS_OF_A_GPU):
            active, kind = ctypes.c_int(), ctypes.c_int()
            if self.library.nvmlDeviceGetNvLinkState(self.device(address), link, ctypes.byref(active)) or not active.value:
                continue
            self.call("nvmlDeviceGetNvLinkRemoteDeviceType", self.device(address), link, ctypes.byref(kind))
            ends.append(REMOTE.get(kind.value, "unknown end"))
        return ends


def smi(*arguments):
    return subprocess.run(["nvidia-smi", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def show_links(nvml, gpus, topo):
    for number, address in enumerate(gpus):
        ends = nvml.active_links(address)
        text = ", ".join(f"{ends.count(kind)} to a {kind}" for kind in sorted(set(ends))) or "none"
        print(f"GPU{number} {address}: active NVLinks: {text}")
    switches = sum(each["role"] == "nvswitch" for each in topo["functions"])
    print(f"NVSwitches among the PCI functions, by `topo`: {switches}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        topo = json.load(file)
    try:
        nvml = Nvml()
        text = smi("topo", "-m")
        gpus = [normal(each) for each in smi("--query-gpu=pci.bus_id", "--format=csv,noheader").split()]
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"driver_view: no answer from NVIDIA's driver: {error}", file=sys.stderr)
        sys.exit(6)
    print(text)
    paths = {(i, j): nvml.path(gpus[i], gpus[j]) for i in range(len(gpus)) for j in range(len(gpus)) if i != j}
    pairs, nodes = compare(parse_matrix(text), topo, gpus, paths)
    for one, other, theirs, ours in pairs:
        print(f"{one} {other}: driver {theirs}, vfpass {ours}{'' if theirs == ours else '  DIFFERENT'}")
    for row, theirs, ours in nodes:
        print(f"{row}: NUMA node: driver {theirs}, vfpass {ours}{'' if theirs in (None, ours) else '  DIFFERENT'}")
    show_links(nvml, gpus, topo)
    wrong = sum(theirs != ours for _, _, theirs, ours in pairs)
    wrong += sum(theirs not in (None, ours) for _, theirs, ours in nodes)
    print(f"{len(pairs)} distances and {len(nodes)} NUMA nodes compared, {wrong} different")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
