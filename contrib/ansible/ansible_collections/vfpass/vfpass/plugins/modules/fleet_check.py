# Documentation of the action plugin with the same name, which runs on the controller.
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: fleet_check
short_description: Find mistakes in the vfpass variables of all hosts
description:
  - Compares the variables C(vfpass_vms), C(vfpass_host_policy) and C(vfpass_fleet) of every host of a group, also of hosts that
    C(--limit) or C(serial) leave out, and reports all mistakes at once with host, VM, key and remedy.
  - Runs on the controller, connects to no host and changes nothing. Use it with C(run_once).
  - Automatic MAC addresses and GUIDs are compared if the VM's UUID is known.
options:
  group:
    description: The group of hosts.
    type: str
    default: all
author: vfpass (@vfpass)
"""

EXAMPLES = r"""
- name: Check the whole inventory
  vfpass.vfpass.fleet_check:
  run_once: true
"""

RETURN = r"""
mistakes:
  description: One item for each mistake, with host, vm, key, message and remedy.
  returned: always
  type: list
  elements: dict
hosts:
  description: Number of hosts with variables of vfpass.
  returned: always
  type: int
vms:
  description: Number of VMs.
  returned: always
  type: int
vfs:
  description: Number of VFs.
  returned: always
  type: int
"""
