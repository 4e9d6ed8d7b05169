# Documentation of the action plugin with the same name, which runs on the controller.
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: subnet_manager
short_description: Write the GUIDs of all InfiniBand VFs for the subnet manager
description:
  - Writes C(partitions.conf) (OpenSM's format, one partition for each tenant that has one), C(port-guids.txt) (one GUID in each
    line) and C(port-guids.csv) (with host, VM, rail, tenant and node GUID) into a directory of the controller.
  - Contains the hosts of a group, whatever C(--limit) and C(serial) select. Use it with C(run_once).
  - Writes nothing while M(vfpass.vfpass.fleet_check) reports a mistake, or a GUID is unknown because it is automatic and the VM's UUID
    is missing.
  - C(partitions.conf) contains no rule for the default partition. In that case OpenSM makes all ports limited members of it.
  - Supports check mode and diff mode.
options:
  directory:
    description: Directory on the controller.
    type: path
    required: true
  group:
    description: The group of hosts.
    type: str
    default: all
  ipoib:
    description: Permit IPoIB in the partitions.
    type: bool
    default: true
author: vfpass (@vfpass)
"""

EXAMPLES = r"""
- name: Write the files for OpenSM
  vfpass.vfpass.subnet_manager:
    directory: /srv/opensm
  run_once: true
"""

RETURN = r"""
guids:
  description: Number of port GUIDs.
  returned: always
  type: int
files:
  description: Names of the files in the directory.
  returned: always
  type: list
  elements: str
"""
