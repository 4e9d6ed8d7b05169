"""leases.py PLAN DIRECTORY: writes a state database with the leases that a saved plan of attach would record."""

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
plan = json.loads(Path(sys.argv[1]).read_text())
path = Path(sys.argv[2])
path.mkdir(mode=0o700)
connection = sqlite3.connect(path / "vfpass.db")
connection.executescript(TABLES)
for step in plan["steps"]:
    if step["change"]["do"] == "record-lease":
        lease = {**step["change"]["lease"], "generation": 1}
        connection.execute("INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (
            lease["domain"], lease["vf-name"], lease["pf"], lease["vf-index"], 1, lease["state"], lease["boot-id"], json.dumps(lease)))
connection.commit()
connection.close()
(path / "vfpass.db").chmod(0o600)
