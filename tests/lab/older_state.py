#!/usr/bin/env python3
"""older_state.py VM: rewrites the state database and the VM's metadata, in libvirt's configuration and in the running domain, as vfpass
wrote them before database format 3 and version 2 of the metadata, with the seal of that version (src/domain/metadata_version_1.cpp
reads it). The content stays the same, but for ended leases, uses of devices and quarantine, which format 2 has no place for. Prints the new format of both.
"""

import hashlib
import hmac
import json
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

NAMESPACE = "https://vfpass.org/xmlns/domain/1"
DATABASE = "/var/lib/vfpass/vfpass.db"
SETTINGS = {"mac": "/mac", "vlan-id": "/vlan/id", "vlan-qos": "/vlan/qos", "vlan-protocol": "/vlan/protocol", "rate-min": "/rate/min",
            "rate-max": "/rate/max", "spoof-check": "/spoof-check", "link-state": "/link-state", "trust": "/trust", "node-guid": "/node-guid",
            "port-guid": "/port-guid"}
# By element the attributes with the members of the record, in the order in which they are sealed.
ATTRIBUTES = {
    "lease": {"name": "/vf-name", "kind": "/kind", "generation": "/generation", "pf": "/pf", "pf-path": "/pf-path", "pf-serial": "/pf-serial",
              "vf-index": "/vf-index", "vf": "/vf", "vf-count": "/vf-count", "infiniband": "/infiniband", "managed": "/managed",
              "interface": "/interface-form", "persistent": "/persistent", "teaming-with": "/teaming-with", "vfio-driver": "/vfio-driver",
              "required": "/required", "refused": "/refused", "allow": "/allow"},
    "settings": SETTINGS,
    "guest": {"address": "/address", "port-index": "/port/index", "port-address": "/port/address", "port-multifunction": "/port/multifunction"},
    "controller": {"model": "/model", "index": "/index", "address": "/address", "node": "/node", "bus-number": "/bus-number",
                   "hotplug": "/hotplug"},
    "original": {"driver": "/driver", "driver-override": "/driver-override", "created": "/created", **SETTINGS},
    "setting": {"name": "/setting", "place": "/place"},
    "element": {"text": ""},
}
ESCAPED = {"pf-path", "pf-serial", "teaming-with", "driver", "driver-override", "text"}


def escaped(text):
    """Control characters, bytes that are not ASCII, and the percent sign as %NN."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7f and byte != 0x25 else f"%{byte:02x}" for byte in text.encode())


def text_of(name, value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(value)
    return escaped(value) if name in ESCAPED else str(value)


def take(record, path):
    """Removes the member that the path names, and returns it, or None."""
    *parents, last = path.split("/")[1:]
    for each in parents:
        record = record.get(each) or {}
    return record.pop(last, None)


def element(name, record):
    made = ElementTree.Element(name)
    for attribute, path in ATTRIBUTES[name].items():
        value = take(record, path)
        if value is not None:
            made.set(attribute, text_of(attribute, value))
    left = {key: value for key, value in record.items() if value not in (None, {}, [])}
    if left:
        raise SystemExit(f"older_state: version 1 has no place for {left}")
    return made


def lease_of_version_1(record):
    settings, guest, original = (record.pop(each) for each in ("settings", "guest", "original"))
    edits = record.pop("edits", [])
    lease = element("lease", record)
    lease.append(element("settings", settings))
    controllers = guest.pop("controllers", [])
    lease.append(element("guest", guest))
    for each in controllers:
        # Version 1 left it out if 0.
        if each.get("bus-number") == 0:
            del each["bus-number"]
        lease[-1].append(element("controller", each))
    lease.append(element("original", {**original.pop("settings"), **original}))
    for edit in edits:
        elements = edit.pop("elements")
        lease.append(element("setting", edit))
        for each in elements:
            ElementTree.SubElement(lease[-1], "element", text=escaped(each))
    return lease


def sealed(text):
    return f"{len(text.encode())}:{text}"


def sealed_element(node):
    parts = "".join(sealed(name) + sealed(node.get(name)) for name in ATTRIBUTES[node.tag] if name in node.keys())
    return sealed(f"vfpass:{node.tag}") + parts + "".join(map(sealed_element, node)) + sealed("")


def seal_of(uuid, leases, secret, host):
    head = "".join(map(sealed, ("vfpass:domain", "xmlns:vfpass", NAMESPACE, "version", "1", "uuid", uuid)))
    body = "".join(sealed_element(lease) for lease in sorted(leases, key=lambda lease: lease.get("name")))
    message = "22:vfpass domain metadata" + sealed(host) + head + body + sealed("")
    return hmac.new(secret, message.encode(), hashlib.sha256).hexdigest()


def metadata_of_version_1(metadata, secret, host):
    leases = [lease_of_version_1(json.loads(lease.text)) for lease in metadata.iter("lease")]
    made = ElementTree.Element("domain", {**metadata.attrib, "version": "1", "seal": seal_of(metadata.get("uuid"), leases, secret, host)})
    made.extend(leases)
    return ElementTree.tostring(made, encoding="unicode")


def database_of_format_2(path):
    """Drops what formats 3 to 5 have added. Returns the number of the format."""
    database = sqlite3.connect(path, isolation_level=None)
    for table in ("ended_leases", "device_uses", "quarantine"):
        database.execute(f"DROP TABLE {table}")
    database.execute("PRAGMA user_version = 2")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    database.close()
    return version


def virsh(*arguments):
    return subprocess.run(["virsh", "--quiet", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def main(domain):
    secret = bytes.fromhex(Path("/etc/vfpass/seal.key").read_text(encoding="ascii").strip())
    host = Path("/etc/machine-id").read_text(encoding="ascii").strip().lower()
    for scope in ("--config", "--live"):
        metadata = ElementTree.fromstring(virsh("metadata", domain, NAMESPACE, scope))
        virsh("metadata", domain, NAMESPACE, scope, "--key", "vfpass", "--set", metadata_of_version_1(metadata, secret, host))
    print("database", database_of_format_2(DATABASE), "metadata",
          ElementTree.fromstring(virsh("metadata", domain, NAMESPACE)).get("version"))


if __name__ == "__main__":
    main(sys.argv[1])
