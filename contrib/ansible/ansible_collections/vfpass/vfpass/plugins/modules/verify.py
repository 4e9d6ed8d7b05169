from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: verify
short_description: Verify in a running VM that RDMA works
description:
  - Runs C(vfpass verify) and returns its report. Changes nothing on the host.
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
    description: Minimum share of the limit, such as C(90%).
    type: str
  timeout:
    description: Time limit in seconds.
    type: int
  accept_unverified:
    description: Succeed if vfpass could not observe everything (exit code 6). Such a VM is not verified.
    type: bool
    default: false
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
  returned: if vfpass wrote one
  type: dict
exit_code:
  description: 0 passed, 4 failed, 6 unverified.
  returned: unless skipped
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


def findings(report):
    """Those that need attention, one in each line."""
    bad = [each for each in report.get("findings", []) if each["result"] in ("failed", "not_observable")]
    return "\n".join("%s%s: %s: %s%s" % (each["key"], " " + each["entry"] if each["entry"] else "", each["result"], each["seen"],
                                         "; remedy: " + each["remedy"] if each["remedy"] else "") for each in bad)


def main():
    arguments = dict(
        vm=dict(type="str", required=True),
        peer=dict(type="str"),
        minimum_bandwidth=dict(type="str"),
        timeout=dict(type="int"),
        accept_unverified=dict(type="bool", default=False),
    )
    arguments.update(program.ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False, skipped=True, msg="not possible in check mode")
    found = program.Program(module, False).run(*command(module.params))
    result = dict(changed=False, exit_code=found.code)
    if found.document is not None:
        result["report"] = found.document
    accepted = (program.DONE, program.UNVERIFIED) if module.params["accept_unverified"] else (program.DONE,)
    if found.code not in accepted:
        text = findings(found.document) if found.document is not None else found.reason()
        module.fail_json(msg="%s: exit code %d\n%s" % (module.params["vm"], found.code, text), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
