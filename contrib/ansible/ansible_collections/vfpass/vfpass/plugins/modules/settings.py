# Documentation of the action plugin with the same name, which runs on the controller.
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: settings
short_description: Evaluate variables without facts of hosts
description:
  - Facts override variables of the inventory, and a host can return any fact. This action evaluates variables as Ansible does for a task,
    with everything that the operator sets (inventory, variables of play and role, C(set_fact), extra variables), but without facts.
  - Register the result. Facts do not override registered variables.
  - Fails if the host returned a fact named C(inventory_hostname).
  - Runs on the controller, connects to no host and changes nothing.
options:
  names:
    description: Names of the variables. Variables that are not defined are left out.
    type: list
    elements: str
    required: true
author: vfpass (@vfpass)
"""

EXAMPLES = r"""
- name: Evaluate the variables without facts
  vfpass.vfpass.settings:
    names: [vfpass_reports_directory]
  register: vfpass_settings
"""

RETURN = r"""
variables:
  description: The values by name.
  returned: always
  type: dict
"""
