from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: proposal
short_description: Put the mapping that vfpass init proposes into host_vars
description:
  - Runs C(vfpass init) on the host, which proposes the nearest pairs of free GPUs and PFs, and writes the mapping as C(vfpass_vms) into a file
    of the controller. Changes nothing on the host.
  - The file is C(DIRECTORY/HOST.yml), or C(DIRECTORY/HOST/vfpass.yml) if there is a directory C(DIRECTORY/HOST). A file that exists with another
    content is never changed.
  - Review the file and add tenant and addresses before you deploy it. The proposal considers what is leased, not what was proposed.
  - A proposal with a template or an unknown key is refused, because Ansible evaluates host_vars on the controller.
  - Supports check mode and diff mode.
extends_documentation_fragment: vfpass.vfpass.program
options:
  vm:
    description: Name or UUID of the VM.
    type: str
    required: true
  gpus:
    description: Number of GPUs.
    type: int
    default: 1
  vfs:
    description: Number of VFs; by default one for each GPU.
    type: int
  infiniband:
    description: Only VFs of InfiniBand PFs.
    type: bool
    default: false
  directory:
    description: Directory on the controller, mostly C(host_vars) beside the inventory.
    type: path
    required: true
author: vfpass (@vfpass)
"""

EXAMPLES = r"""
- name: Propose a mapping
  vfpass.vfpass.proposal:
    vm: train0
    gpus: 2
    directory: "{{ inventory_dir }}/host_vars"
"""

RETURN = r"""
path:
  description: The file on the controller.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.vfpass.vfpass.plugins.module_utils import program


def main():
    arguments = dict(vm=dict(type="str", required=True), gpus=dict(type="int", default=1), vfs=dict(type="int"),
                     infiniband=dict(type="bool", default=False),
                     directory=dict(type="path", required=True))  # for the action plugin
    arguments.update(program.ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    parameters = module.params
    command = ["init", "--gpus", str(parameters["gpus"])]
    if parameters["vfs"] is not None:
        command += ["--vfs", str(parameters["vfs"])]
    if parameters["infiniband"]:
        command.append("--infiniband")
    found = program.Program(module, True).run(*(command + ["--", parameters["vm"]]))
    if found.code != program.DONE:
        module.fail_json(msg=found.reason())
    module.exit_json(changed=False, mapping=found.output)


if __name__ == "__main__":
    main()
