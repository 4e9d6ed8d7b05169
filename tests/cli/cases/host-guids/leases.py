"""leases.py DIRECTORY: writes a state database with leases of InfiniBand and other devices into it."""

import json
import sqlite3
import sys
from pathlib import Path

TABLES = """
    CREATE TABLE leases (domain TEXT NOT NULL, vf_name TEXT NOT NULL, pf TEXT NOT NULL, vf_index INTEGER NOT NULL,
      generation INTEGER NOT NULL, state TEXT NOT NULL, boot_id TEXT NOT NULL, lease TEXT NOT NULL,
      PRIMARY KEY (domain, vf_name), UNIQUE (pf, vf_index)) STRICT;
    PRAGMA user_version = 3;
"""


def lease(number, name, entry, settings, **other):
    domain = f"0f5e9a3c-1111-4222-8333-94445556667{number}"
    return {"allow": [], "boot-id": "0b5a0b1c-0000-4000-8000-000000000001", "domain": domain, "domain-name": name, "edits": [],
            "generation": number, "guest": {"address": "0000:05:00.0"}, "infiniband": True, "interface-form": False, "kind": "vf",
            "managed": False, "original": {"created": False, "driver": "mlx5_core", "driver-override": "", "settings": {}},
            "persistent": True, "pf": "0000:3b:00.0", "pf-path": "pci0000:3a/0000:3a:00.0/0000:3b:00.0", "pf-serial": "MT2024X00000",
            "refused": [], "required": [], "settings": settings, "state": "reserved", "vf": f"0000:3b:00.{number}", "vf-count": 8,
            "vf-index": number - 2, "vf-name": entry, **other}


def guids(number):
    return {"node-guid": f"02:00:00:00:00:00:00:{number:02x}", "port-guid": f"02:00:00:00:00:00:01:{number:02x}"}


LEASES = [
    lease(2, "train0", "rail0", guids(2)),
    lease(3, "train0", "rail1", guids(3), domain="0f5e9a3c-1111-4222-8333-944455566672"),
    lease(4, "a,\"b\"\n0xff=full ;", "rail0", guids(4)),
    lease(5, "ethernet", "rail0", {"mac": "02:01:02:03:04:05"}, infiniband=False),
    lease(6, "refused", "rail0", guids(6), refused=["port-guid"]),
    lease(7, "=cmd|'calc'!A0", "rail0", guids(7), refused=["node-guid"]),
]

path = Path(sys.argv[1])
path.mkdir(mode=0o700)
connection = sqlite3.connect(path / "vfpass.db")
connection.executescript(TABLES)
for each in LEASES:
    connection.execute("INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (
        each["domain"], each["vf-name"], each["pf"], each["vf-index"], each["generation"], each["state"], each["boot-id"], json.dumps(each)))
connection.commit()
connection.close()
(path / "vfpass.db").chmod(0o600)
