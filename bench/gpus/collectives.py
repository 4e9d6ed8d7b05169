#!/usr/bin/env python3
"""collectives.py TOPOLOGY.xml ROUNDS: NCCL with and without our topology file, on 1, 2, 4, ... and all GPUs.

For each number of GPUs: the words and bandwidths of the paths that NCCL computes, compared, and the bus bandwidth of an
all-reduce of 1 GiB, by the method of nccl-tests: one process with one rank on each GPU, 2 (n - 1) / n of the bytes over
the time. Every element of the result is checked. Rounds with and without the file take turns, each in a new process,
because NCCL reads the file once. The exit status is 1 if a path or a sum differs, and 6 without PyTorch and a GPU.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ELEMENTS = 1 << 28  # of 4 bytes
REPETITIONS = 20


def paths_of(log):
    """The paths from each GPU in NCCL's log: (from, to) -> (word, bandwidth). NCCL writes a device as KIND/RANK-ID."""
    found = {}
    # A device without a node of the kernel is below the processor of node -1, which a file cannot name.
    log = re.sub(r"CPU/0-f{8,16}\b", "CPU/0-0", log)
    for line in log.splitlines():
        head = re.search(r"NCCL INFO (GPU/\S+) ?:(.*)", line)
        for device, width, word in re.findall(r"(\S+) \([^/()]*/([^/()]*)/([A-Z0-9]+)\)", head.group(2) if head else ""):
            found[head.group(1), device] = (word, float(width))
    return found


def measure(count):
    """The child process: prints the seconds of each all-reduce and whether all sums are right."""
    import torch
    import torch.cuda.nccl as nccl
    tensors = [torch.empty(ELEMENTS, dtype=torch.float32, device=f"cuda:{number}") for number in range(count)]
    seconds = []
    for repetition in range(-5, REPETITIONS):  # five to warm up
        for number, tensor in enumerate(tensors):
            tensor.fill_(number + 1 + repetition)
        for number in range(count):
            torch.cuda.synchronize(number)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.device(0):
            begin.record()
            nccl.all_reduce(tensors)
            end.record()
        for number in range(count):
            torch.cuda.synchronize(number)
        wanted = sum(number + 1 + repetition for number in range(count))
        right = all(bool((tensor == wanted).all()) for tensor in tensors)
        if repetition >= 0:
            seconds.append(begin.elapsed_time(end) / 1e3)
        if not right:
            break
    print(json.dumps({"seconds": seconds, "right": right, "nccl": ".".join(map(str, nccl.version()))}))


def run(count, file):
    """One process: its result, with the bus bandwidth in 10^9 bytes per second and the paths."""
    with tempfile.NamedTemporaryFile("r") as log:
        environment = dict(os.environ, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="GRAPH,INIT,ENV", NCCL_DEBUG_FILE=log.name)
        environment.pop("NCCL_TOPO_FILE", None)
        if file:
            environment["NCCL_TOPO_FILE"] = file
        child = subprocess.run([sys.executable, __file__, "--measure", str(count)], env=environment, check=True,
                               stdout=subprocess.PIPE, text=True, timeout=240)
        text = log.read()
    result = json.loads(child.stdout.splitlines()[-1])
    if file and f"NCCL_TOPO_FILE set by environment to {file}" not in text:
        sys.exit(f"collectives: NCCL's log does not say that it has read {file}:\n{text[:3000]}")
    result["paths"] = paths_of(text)
    result["rate"] = ELEMENTS * 4 * 2 * (count - 1) / count / statistics.median(result["seconds"]) / 1e9
    return result


def spread(rates):
    return f"{statistics.median(rates):.1f} ({min(rates):.1f}-{max(rates):.1f})"


def compare(count, file, rounds):
    """Prints one line of results; returns the number of differences and wrong sums."""
    results = {name: [] for name in ("with", "without")}
    for number in range(rounds):
        for name in ("with", "without") if number % 2 else ("without", "with"):
            results[name].append(run(count, file if name == "with" else None))
    ours, own = (results[name][0]["paths"] for name in ("with", "without"))
    different = {key: (ours.get(key), own.get(key)) for key in {*ours, *own} if ours.get(key) != own.get(key)}
    wrong = sum(not each["right"] for each in results["with"] + results["without"])
    words = sorted({word for word, _ in ours.values()})
    rates = [[each["rate"] for each in results[name]] for name in ("without", "with")]
    figures = [spread(each) for each in rates] if count > 1 else ["-", "-"]
    ratio = f"{statistics.median(rates[1]) / statistics.median(rates[0]):.3f}" if count > 1 else "-"
    print(f"| {count} | {len(ours)} ({' '.join(words)}) | {len(different)} | {figures[0]} | {figures[1]} | {ratio} | {wrong} |",
          flush=True)
    for (one, other), (here, there) in sorted(different.items()):
        print(f"  {one} to {other}: with the file {here}, without {there}")
    return len(different) + wrong + (not ours), results["with"][0]["nccl"]


def main():
    if sys.argv[1:2] == ["--measure"]:
        return measure(int(sys.argv[2]))
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("collectives: PyTorch with CUDA and a GPU is missing", file=sys.stderr)
        sys.exit(6)
    file, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    available = torch.cuda.device_count()
    print("| ranks | paths that NCCL computes | different with our file | all-reduce, 10^9 B/s: without | with | with/without "
          "| wrong sums |\n|---|---|---|---|---|---|---|")
    wrong = 0
    for count in sorted({1, available, *(1 << power for power in range(8) if 1 << power <= available)}):
        differences, version = compare(count, file, rounds)
        wrong += differences
    print(f"NCCL {version}, {rounds} rounds, median (least-most) of their medians")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
