"""bench/gpus: what `nvidia-smi topo -m` and NCCL's log say, and bench/gpus.sh on a machine without GPUs."""

import subprocess
import sys
import unittest
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "bench" / "gpus"))
import collectives  # noqa: E402
import driver_view  # noqa: E402

UNDERLINED = "\t\x1b[4m{}\x1b[0m\n"
LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NV#  = Connection traversing a bonded set of # NVLinks
"""


def two_gpus(word="NV18", node="N/A"):
    """A virtual machine with two GPUs, as driver 580 prints it."""
    return (UNDERLINED.format("GPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID")
            + f"GPU0\t X \t{word}\t0-31\t{node}\t\tN/A\nGPU1\t{word}\t X \t0-31\t{node}\t\tN/A\n" + LEGEND)


def eight_gpus():
    """A board with eight GPUs and a NIC beside each: four of each on either node."""
    names = [f"GPU{number}" for number in range(8)] + [f"NIC{number}" for number in range(8)]

    def word(one, other):
        if one == other:
            return " X "
        if one[:3] == other[:3] == "GPU":
            return "NV18"
        if one[3:] == other[3:]:
            return "PIX"
        return "NODE" if int(one[3:]) // 4 == int(other[3:]) // 4 else "SYS"

    lines = [UNDERLINED.format("\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]))]
    for name in names:
        cells = "\t".join(word(name, other) for other in names)
        node = int(name[3:]) // 4
        place = f"{node * 48}-{node * 48 + 47}\t{node}\t\tN/A" if name.startswith("GPU") else "\t\t\t"
        lines.append(f"{name}\t{cells}\t{place}\n")
    return "".join(lines) + LEGEND + "\nNIC Legend:\n\n" + "".join(f"  NIC{i}: mlx5_{i}\n" for i in range(8))


GPUS = [f"0000:{0x10 + number:02x}:00.0" for number in range(8)]
NICS = [f"0000:{0x20 + number:02x}:00.0" for number in range(8)]


def topo(gpu_distance="SYS"):
    """The output of `vfpass topo --json` for the board of eight_gpus()."""
    def nic_word(gpu, nic):
        return "PIX" if gpu == nic else "NODE" if gpu // 4 == nic // 4 else "SYS"
    functions = [{"address": address, "numa_node": number // 4, "role": "gpu", "rdma": []}
                 for number, address in enumerate(GPUS)]
    functions += [{"address": address, "numa_node": number // 4, "role": "nic", "rdma": [{"name": f"mlx5_{number}"}]}
                  for number, address in enumerate(NICS)]
    return {"functions": functions, "processors": {"numa_nodes": [{"number": 0}, {"number": 1}]},
            "distances": [{"gpu": GPUS[gpu], "pf": NICS[nic], "distance": nic_word(gpu, nic)}
                          for gpu in range(8) for nic in range(8)],
            "gpu_distances": [{"gpu": GPUS[one], "other_gpu": GPUS[other], "distance": gpu_distance}
                              for one in range(8) for other in range(one + 1, 8)]}


PATHS = {(one, other): "SYS" for one in range(8) for other in range(8)}


class MatrixOfTheDriver(unittest.TestCase):
    def test_two_gpus(self):
        matrix = driver_view.parse_matrix(two_gpus())
        self.assertEqual({("GPU0", "GPU0"): "X", ("GPU0", "GPU1"): "NV18",
                          ("GPU1", "GPU0"): "NV18", ("GPU1", "GPU1"): "X"}, matrix.words)
        self.assertEqual({"GPU0": None, "GPU1": None}, matrix.numa)
        self.assertEqual({"GPU0": 1, "GPU1": 1}, driver_view.parse_matrix(two_gpus(node="1")).numa)
        self.assertIsNone(driver_view.parse_matrix(two_gpus(node="0-1")).numa["GPU0"])

    def test_eight_gpus_with_nics(self):
        matrix = driver_view.parse_matrix(eight_gpus())
        self.assertEqual(16 * 16, len(matrix.words))
        self.assertEqual("PIX", matrix.words["GPU5", "NIC5"])
        self.assertEqual("NODE", matrix.words["NIC7", "GPU4"])
        self.assertEqual("SYS", matrix.words["GPU0", "NIC4"])
        self.assertEqual([0, 0, 0, 0, 1, 1, 1, 1], [matrix.numa[f"GPU{number}"] for number in range(8)])
        self.assertEqual("mlx5_3", matrix.nics["NIC3"])

    def test_other_text_is_refused(self):
        for text in ("", "No devices were found\n", two_gpus().replace("GPU1\tNV18\t X ", "GPU1\tNV18"),
                     two_gpus().split("GPU1\tNV18")[0]):
            with self.assertRaises(ValueError, msg=repr(text)):
                driver_view.parse_matrix(text)


class Comparison(unittest.TestCase):
    def differences(self, document, gpus=tuple(GPUS)):
        pairs, nodes = driver_view.compare(driver_view.parse_matrix(eight_gpus()), document, list(gpus), PATHS)
        self.assertEqual(28 + 64, len(pairs))
        self.assertEqual(8, len(nodes))
        return [each for each in pairs if each[2] != each[3]], [each for each in nodes if each[1] != each[2]]

    def test_equal_views(self):
        self.assertEqual(([], []), self.differences(topo()))

    def test_path_behind_nvlink_is_compared(self):
        pairs, _ = self.differences(topo(gpu_distance="NODE"))
        self.assertEqual(28, len(pairs))
        self.assertIn(("GPU0", "GPU1", "SYS", "NODE"), pairs)

    def test_missing_distances_and_wrong_nodes_differ(self):
        document = topo()
        document["distances"].pop()
        document["functions"][2]["numa_node"] = 1
        self.assertEqual(([("GPU7", "NIC7", "PIX", "none")], [("GPU2", 0, 1)]), self.differences(document))

    def test_unknown_node_is_the_only_node_of_the_machine(self):
        document = topo()
        document["functions"][6]["numa_node"] = None
        self.assertEqual(([], [("GPU6", 1, None)]), self.differences(document))
        document["processors"]["numa_nodes"] = [{"number": 1}]
        self.assertEqual(([], []), self.differences(document))

    def test_gpus_of_exchanged_addresses_differ(self):
        pairs, nodes = self.differences(topo(), [*GPUS[4:], *GPUS[:4]])
        self.assertEqual((64, 8), (len(pairs), len(nodes)))

    def test_addresses_in_the_notation_of_the_kernel(self):
        self.assertEqual("0000:0f:00.0", driver_view.normal("00000000:0F:00.0"))
        self.assertEqual("10000:0f:00.0", driver_view.normal("00010000:0F:00.0"))


class PathsOfNccl(unittest.TestCase):
    def test_lines_of_the_log(self):
        log = ("vm:7:9 [0] NCCL INFO === System : maxBw 48.0 totalBw 480.0 ===\n"
               "vm:7:9 [0] NCCL INFO GPU/0-1000 :GPU/0-1000 (0/5000.0/LOC) GPU/0-2000 (2/480.0/NVL) CPU/0-ffffffffffffff (1/63.0/PHB) \n"
               "vm:7:9 [0] NCCL INFO GPU/0-2000 :GPU/0-1000 (2/480.0/NVL) NET/0-1 (3/24.0/PIX) \n")
        self.assertEqual({("GPU/0-1000", "GPU/0-1000"): ("LOC", 5000.0), ("GPU/0-1000", "GPU/0-2000"): ("NVL", 480.0),
                          ("GPU/0-1000", "CPU/0-0"): ("PHB", 63.0), ("GPU/0-2000", "GPU/0-1000"): ("NVL", 480.0),
                          ("GPU/0-2000", "NET/0-1"): ("PIX", 24.0)}, collectives.paths_of(log))


class MachineWithoutGpus(unittest.TestCase):
    def test_names_all_that_is_missing(self):
        environment = {"PATH": "/usr/bin:/bin", "VFPASS_BUILD": "/nowhere"}
        child = subprocess.run([CHECKOUT / "bench" / "gpus.sh"], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(6, child.returncode)
        for missing in ("/nowhere/sbin/vfpass: build it", "vfpass-probe: build it", "NVIDIA GPU", "PyTorch"):
            self.assertIn(missing, child.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
