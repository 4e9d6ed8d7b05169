#!/usr/bin/env python3
"""agree_with_hwloc TREE TOPO.json: fails when hwloc, reading the same tree, has another bridge in common
for some GPU and PF than the distance says.

hwloc sees no CPUs in a captured tree, so it cannot tell NODE from SYS: both are "no host bridge in common".
"""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

HOST_BRIDGE = "0-1"
MEANS = {"PIX": "bridge", "PXB": "bridge", "PHB": "host bridge", "NODE": "nothing", "SYS": "nothing"}


def bridges_above(tree):
    """For each PCI function of hwloc's: the bridges above it, host bridge first."""
    environment = dict(os.environ, HWLOC_FSROOT=tree, HWLOC_THISSYSTEM="0")
    text = subprocess.run(["lstopo", "--whole-io", "--of", "xml", "-"], env=environment, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found = {}

    def walk(element, above):
        if element.get("type") == "Bridge":
            above = above + [(element.get("gp_index"), element.get("bridge_type"))]
        elif element.get("type") == "PCIDev":
            found[element.get("pci_busid")] = above
        for child in element:
            walk(child, above)

    walk(xml.fromstring(text), [])
    return found


def in_common(one, other):
    shared = [bridge for bridge, same in zip(one, other) if bridge == same]
    if not shared:
        return "nothing"
    return "host bridge" if shared[-1][1] == HOST_BRIDGE else "bridge"


def main():
    above = bridges_above(os.path.realpath(sys.argv[1]))
    with open(sys.argv[2], encoding="utf-8") as file:
        distances = json.load(file)["distances"]
    wrong = 0
    for entry in distances:
        seen = in_common(above[entry["gpu"]], above[entry["pf"]])
        if seen != MEANS[entry["distance"]]:
            print(f"{entry['gpu']} and {entry['pf']} are {entry['distance']}, hwloc says: {seen} in common")
            wrong += 1
    print(f"{len(distances)} distances, {wrong} of them other than hwloc's")
    sys.exit(wrong != 0)


main()
