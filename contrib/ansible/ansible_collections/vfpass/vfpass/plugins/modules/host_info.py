from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: host_info
short_description: Read a host's settings, leases, topology and the state of its GPUDirect chain
description:
  - Returns the JSON documents of read-only commands of vfpass. Changes nothing.
extends_documentation_fragment: vfpass.vfpass.program
options:
  gather:
    description: The documents to return, from C(vfpass host show), C(vfpass status), C(vfpass doctor) and C(vfpass topo).
    type: list
    elements: str
    choices: [host, status, doctor, topo]
    default: [host, status]
  reports_directory:
    description: Directory on the controller. The documents are kept there as C(HOST/NAME.json), except in check mode.
    type: path
author: vfpass (@vfpass)
"""

EXAMPLES = r"""
- name: Read leases and settings
  vfpass.vfpass.host_info:
  register: found
"""

RETURN = r"""
documents:
  description: The documents by name, as described in docs/json.
  returned: always
  type: dict
exit_codes:
  description: The exit codes by name. 3 means drift or pending changes.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.vfpass.vfpass.plugins.module_utils import program

COMMANDS = dict(host=("host", "show"), status=("status",), doctor=("doctor",), topo=("topo",))


def main():
    arguments = dict(gather=dict(type="list", elements="str", choices=["host", "status", "doctor", "topo"], default=["host", "status"]),
                     reports_directory=dict(type="path"))  # for the action plugin
    arguments.update(program.ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    reader = program.Program(module, True)
    result = dict(changed=False, documents={}, exit_codes={})
    for name in module.params["gather"]:
        found = reader.run(*(COMMANDS[name] + ("--json",)))
        if found.document is None or not found.ended:
            module.fail_json(msg=found.reason(), **result)
        result["documents"][name], result["exit_codes"][name] = found.document, found.code
    module.exit_json(**result)


if __name__ == "__main__":
    main()
