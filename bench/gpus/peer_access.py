#!/usr/bin/env python3
"""peer_access.py [BYTES]: copies between the memories of every two GPUs, in both directions, with peer access.

CUDA says whether one GPU can access the memory of another one (cuDeviceCanAccessPeer). Where it can, a pattern that
depends on its place is copied there, and every byte is compared on the target. A second copy with another pattern shows
that the comparison sees a change. The time is compared with that of a copy within one GPU, which reads and writes the
same memory. The exit status is 1 if a byte differs, or if no two GPUs have peer access.
"""

import itertools
import statistics
import sys

import torch

ROUNDS = 10


def pattern(length, device, salt):
    """Bytes that repeat only after 251, a prime number, so that a shifted or swapped block differs."""
    return (torch.arange(length, device=device, dtype=torch.int32) + salt).remainder_(251).to(torch.uint8)


def seconds(target, source):
    """The median time of a copy, by events of the GPU that executes it."""
    times = []
    for _ in range(ROUNDS):
        with torch.cuda.device(source.device):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            target.copy_(source, non_blocking=True)
            end.record()
            end.synchronize()
        torch.cuda.synchronize(target.device)
        times.append(begin.elapsed_time(end) / 1000)
    return statistics.median(times)


def wrong_bytes(target, expected):
    return int((target != expected).sum())


def copied(source_gpu, target_gpu, length):
    """Wrong bytes of two copies with different patterns, and the median time of one."""
    wrong = 0
    target = torch.zeros(length, dtype=torch.uint8, device=f"cuda:{target_gpu}")
    for salt in (1, 2):
        source = pattern(length, f"cuda:{source_gpu}", salt)
        expected = pattern(length, f"cuda:{target_gpu}", salt)
        if wrong_bytes(target, expected) == 0:
            raise RuntimeError("the target has the pattern before the copy: the comparison would show nothing")
        time = seconds(target, source)
        wrong += wrong_bytes(target, expected)
    return wrong, time


def main():
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 30
    gpus = range(torch.cuda.device_count())
    local = {gpu: copied(gpu, gpu, length) for gpu in gpus}
    print("| from | to | peer access | wrong bytes | 10^9 B/s | copy within the GPU |\n|---|---|---|---|---|---|")
    bad = any(wrong for wrong, _ in local.values())
    peers = 0
    for source, target in itertools.permutations(gpus, 2):
        if not torch.cuda.can_device_access_peer(source, target):
            print(f"| {source} | {target} | no | | | |")
            continue
        peers += 1
        wrong, time = copied(source, target, length)
        bad = bad or wrong != 0
        print(f"| {source} | {target} | yes | {wrong} of {length} | {length / time / 1e9:.1f} | {local[source][1] / time:.3f} |")
    return 1 if bad or peers == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
