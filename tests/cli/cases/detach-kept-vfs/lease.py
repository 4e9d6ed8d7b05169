"""lease.py DIRECTORY: writes a state database with a lease of train0, whose VFs vfpass has created."""

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
LEASE = {"allow": [], "boot-id": "0b5a0b1c-0000-4000-8000-000000000001", "domain": "0f5e9a3c-1111-4222-8333-944455566671",
         "domain-name": "train0", "edits": [], "generation": 1, "guest": {"address": "0000:05:00.0"}, "infiniband": False,
         "interface-form": False, "kind": "vf", "managed": False,
         "original": {"created": True, "driver": "mlx5_core", "driver-override": "", "settings": {}}, "persistent": True,
         "pf": "0000:3b:00.0", "pf-path": "pci0000:3a/0000:3a:00.0/0000:3b:00.0", "pf-serial": "", "refused": [], "required": [],
         "settings": {"mac": "02:01:02:03:04:05"}, "state": "reserved", "vf": "0000:3b:00.2", "vf-count": 2, "vf-index": 0,
         "vf-name": "rail0"}

path = Path(sys.argv[1])
path.mkdir(mode=0o700)
connection = sqlite3.connect(path / "vfpass.db")
connection.executescript(TABLES)
connection.execute("INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (
    LEASE["domain"], LEASE["vf-name"], LEASE["pf"], LEASE["vf-index"], LEASE["generation"], LEASE["state"], LEASE["boot-id"],
    json.dumps(LEASE)))
connection.commit()
connection.close()
(path / "vfpass.db").chmod(0o600)
