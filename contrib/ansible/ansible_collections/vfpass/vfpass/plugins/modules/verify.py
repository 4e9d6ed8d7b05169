from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: verify
short_description: Verify in a running VM that RDMA works
description:
  - Runs C(vfpass verify) and returns its report. Changes nothing on the host.
  - Fails unless exit code and report both state that this VM is verified. A program that was killed, or a reply without a report, is a
    failure.
  - Skipped in check mode, because vfpass copies its probe into the guest.
extends_documentation_fragment: vfpass.vfpass.program
options:
  vm:
    description: Name or UUID of the VM.
    type: str
    required: true
  peer:
    description: Another VM, also one of another host, such as C(host2:train0).
    type: str
  minimum_bandwidth:
    description:
      - Minimum share of the limit, such as C(90%); the default is that of the VM's mapping.
      - The report of a run with another share than the mapping's does not become the VM's last verification, which C(vfpass status) and
        metrics show.
    type: str
  timeout:
    description: Time limit in seconds. Below 600, the report does not become the VM's last verification either.
    type: int
  accept_unverified:
    description: Succeed if vfpass could not observe everything (exit code 6). Such a VM is not verified.
    type: bool
    default: false
  reports_directory:
    description: Directory on the controller. The report is kept there as C(HOST/verify-VM.json), also if the verification failed.
    type: path
author: vfpass (@vfpass)
"""

EXAMPLES = r"""
- name: Verify the VM
  vfpass.vfpass.verify:
    vm: train0
    minimum_bandwidth: 90%
"""

RETURN = r"""
report:
  description: The report, as described in docs/json/verify.schema.json.
  returned: unless skipped, or vfpass wrote none
  type: dict
exit_code:
  description: 0 passed, 4 failed, 6 unverified.
  returned: unless skipped, or vfpass wrote no report
  type: int
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.vfpass.vfpass.plugins.module_utils import program


def command(parameters):
    words = ["verify", "--json"]
    for name in ("peer", "minimum_bandwidth", "timeout"):
        if parameters[name] is not None:
            words += ["--" + name.replace("_", "-"), str(parameters[name])]
    return words + ["--", parameters["vm"]]


def main():
    arguments = dict(
        vm=dict(type="str", required=True),
        peer=dict(type="str"),
        minimum_bandwidth=dict(type="str"),
        timeout=dict(type="int"),
        # For the action plugin, which judges the report.
        accept_unverified=dict(type="bool", default=False),
        reports_directory=dict(type="path"),
    )
    arguments.update(program.ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=False)
    found = program.Program(module, False).run(*command(module.params))
    if found.document is None:
        module.fail_json(msg="%s: exit code %d and no report\n%s" % (module.params["vm"], found.code, found.reason()))
    module.exit_json(changed=False, exit_code=found.code, report=found.document)


if __name__ == "__main__":
    main()
