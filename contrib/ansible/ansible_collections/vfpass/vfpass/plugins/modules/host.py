from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: host
short_description: Deploy and apply a host's vfpass configuration
description:
  - Writes C(host.yaml) and one mapping for each VM, runs C(vfpass host apply) and C(vfpass attach), and changes nothing if all of it is
    in place already.
  - Before anything changes, vfpass validates the new files and plans with a copy of them. A mistake, or a plan that vfpass refuses,
    fails the task, and the host is as before.
  - Check mode calls only vfpass's read-only commands, with that copy, and reports the files and steps that would change. Diff mode
    shows the files, the steps with their reasons and the changes of the domain XML.
extends_documentation_fragment: vfpass.vfpass.program
options:
  policy:
    description: Content of C(host.yaml). Without it the file stays as it is.
    type: dict
  mappings:
    description: Contents of the mappings, one for each VM.
    type: list
    elements: dict
    default: []
  purge:
    description: Also remove the mappings of other VMs, after C(vfpass detach) if I(attach) is true.
    type: bool
    default: false
  apply:
    description: Run C(vfpass host apply) if there is a C(host.yaml).
    type: bool
    default: true
  allow_disruption:
    description: Also change PFs that are in a bond or have addresses (C(--allow-disruption)).
    type: bool
    default: false
  attach:
    description: Attach the VFs of each mapping to its VM, which must be defined in libvirt.
    type: bool
    default: true
  scope:
    description: What attaching changes, see C(vfpass attach --help). C(both) also plugs devices into a running VM.
    type: str
    choices: [both, config, live]
    default: both
author: vfpass (@vfpass)
"""

EXAMPLES = r"""
- name: Deploy and apply
  vfpass.vfpass.host:
    policy:
      version: 1
      pfs:
        - pf: {pci: "0000:3b:00.0"}
          virtual-function-count: 8
    mappings:
      - version: 1
        vm: train0
        vfs:
          - {name: rail0, pf: {pci: "0000:3b:00.0"}}
"""

RETURN = r"""
files:
  description: Files that changed, relative to the configuration directory.
  returned: always
  type: list
  elements: str
host_steps:
  description: Steps of C(vfpass host apply), each with action, reason and disrupts.
  returned: always
  type: list
  elements: dict
vms:
  description: Steps of C(vfpass attach) and C(vfpass detach) by VM.
  returned: always
  type: dict
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.vfpass.vfpass.plugins.module_utils import configuration, program


def is_pending(planned):
    """Whether a VM's plan has something to do."""
    return bool(planned["steps"] or planned["xml_diff"] or "unknown" in planned)


def failures_of(document):
    """The reasons in the report of host apply."""
    parts = (document or {}).get("pfs", []) + (document or {}).get("soft_roce", [])
    return [text for part in parts for text in part.get("failures", [])]


class Host:
    def __init__(self, module):
        self.module, self.parameters = module, module.params
        self.directory = self.parameters["config_dir"]
        self.mappings = self.parameters["mappings"]
        self.result = dict(changed=False, files=[], host_steps=[], vms={}, diff=[])
        self.present = configuration.present_files(self.directory)
        self.wanted = dict(self.present)
        self.stage = None
        self.host_pending = False  # also without steps: gpu-memory-check

    def fail(self, message):
        self.module.fail_json(msg=message.replace(self.stage, self.directory) if self.stage else message, **self.result)

    def run(self):
        self.check_names()
        self.wanted.update(configuration.wanted_files(self.parameters["policy"], self.mappings))
        surplus = self.surplus()
        for path in surplus.values():
            del self.wanted[path]
        self.result["diff"] = configuration.differences(self.present, self.wanted)
        self.result["files"] = [each["after_header"] for each in self.result["diff"]]
        with configuration.staged(self.module, self.directory, self.present, self.wanted) as self.stage:
            planned = program.Program(self.module, True, self.stage)
            self.validate(planned)
            self.plan(planned, surplus)
        changes = self.result["files"] or self.host_pending or any(map(is_pending, self.result["vms"].values()))
        if changes and not self.module.check_mode:
            self.execute(surplus)
        self.result["changed"] = bool(changes)

    def check_names(self):
        names = [mapping.get("vm") for mapping in self.mappings]
        if any(not isinstance(name, str) or not name or "/" in name for name in names):
            self.fail("mappings: each one needs `vm`, the name or UUID of its VM")
        for name in names:
            if names.count(name) > 1:
                self.fail("mappings: two mappings of VM %s; combine them" % name)

    def surplus(self):
        """With purge, the paths of the other VMs' mappings by VM."""
        ours = configuration.wanted_files(None, self.mappings)
        found = {}
        for path in self.present if self.parameters["purge"] else ():
            if path == "host.yaml" or path in ours:
                continue
            document = program.Program(self.module, True).run("check", os.path.join(self.directory, path), "--json").document or {}
            vm = (document.get("mappings") or [{}])[0].get("vm")
            if vm is None:
                self.fail("cannot purge %s: cannot tell which VM it belongs to; correct or remove it" % path)
            found[vm] = path
        return found

    def validate(self, planned):
        """All mistakes in the new files, those of vms/ and of host.yaml."""
        problems = []
        for path in self.result["files"]:
            if path.startswith("vms") and path in self.wanted:
                problems += self.problems_in(planned.run("check", os.path.join(self.stage, path), "--json"))
        if "host.yaml" in self.result["files"]:
            shown = planned.run("host", "show", "--json")
            if shown.document is None or shown.code not in (program.DONE, program.PENDING):
                problems.append(shown.reason())
        if problems:
            self.fail("the configuration has mistakes, nothing was changed:\n" + "\n".join(problems))

    def problems_in(self, checked):
        """Without a document for the mapping, or with an exit code that it does not explain, nothing was checked."""
        mappings = (checked.document or {}).get("mappings", [])
        found = [text for each in mappings for text in each["problems"]]
        return found or ([] if mappings and checked.code in (program.DONE, program.PENDING) else [checked.reason()])

    def plan(self, planned, surplus):
        if self.parameters["apply"] and "host.yaml" in self.wanted:
            self.plan_host(planned)
        if not self.parameters["attach"]:
            return
        # The mappings of VMs that are purged are in the real directory only.
        for vm in surplus:
            self.plan_vm(program.Program(self.module, True), vm, "detach", "--dry-run")
        for mapping in self.mappings:
            self.plan_vm(planned, mapping["vm"], "plan", *self.scope())

    def scope(self):
        return () if self.parameters["scope"] == "both" else ("--" + self.parameters["scope"],)

    def disruption(self):
        return ("--allow-disruption",) if self.parameters["allow_disruption"] else ()

    def plan_host(self, planned):
        found = planned.run("host", "apply", "--dry-run", "--json", *self.disruption())
        document = found.document
        failures = failures_of(document)
        if document is None or failures or found.code not in (program.DONE, program.PENDING):
            self.fail("vfpass host apply would fail, nothing was changed:\n" + ("\n".join(failures) or found.reason()))
        parts = document["pfs"] + document["soft_roce"]
        self.result["host_steps"] = [step for part in parts for step in part["steps"]]
        self.host_pending = found.code == program.PENDING
        check = document.get("gpu_memory_check")
        if check and check["differs"]:
            self.result["diff"].append(dict(prepared="vfpass host apply\ngpu-memory-check: %s\n" % str(check["wanted"]).lower()))
        if self.result["host_steps"]:
            self.result["diff"].append(dict(prepared="vfpass host apply\n" + configuration.plan_text(dict(steps=self.result["host_steps"]))))

    def plan_vm(self, planned, vm, *command):
        found = planned.run(*(command + ("--json", "--", vm)))
        document = found.document
        if document is None or found.code not in (program.DONE, program.PENDING):
            if self.result["host_steps"] and found.ended and found.code != program.BAD_INPUT:
                # VFs that host.yaml will create, for example, are missing until then.
                self.module.warn("%s: the plan is unknown until host.yaml is applied: %s" % (vm, found.reason()))
                self.result["vms"][vm] = dict(steps=[], xml_diff="", unknown=found.reason())
                return
            self.fail("%s, nothing was changed" % found.reason())
        steps, xml_diff = document["steps"], document["xml_diff"]
        self.result["vms"][vm] = dict(steps=steps, xml_diff=xml_diff)
        if steps or xml_diff:
            self.result["diff"].append(dict(prepared="vfpass %s %s\n%s" % (document["kind"], vm, configuration.plan_text(document))))

    def execute(self, surplus):
        real = program.Program(self.module, False)
        if self.parameters["attach"]:
            for vm in surplus:
                self.change(real, "detach", "--json", "--", vm)
        for path in surplus.values():
            os.remove(os.path.join(self.directory, path))
            self.result["changed"] = True
        for path in self.result["files"]:
            if path in self.wanted:
                configuration.write(self.directory, path, self.wanted[path])
                self.result["changed"] = True
        if self.host_pending:
            self.change(real, "host", "apply", "--json", *self.disruption())
        for mapping in self.mappings if self.parameters["attach"] else ():
            self.attach(real, mapping["vm"])

    def attach(self, real, vm):
        if is_pending(self.result["vms"][vm]):
            self.change(real, "attach", *(self.scope() + ("--json", "--", vm)))

    def change(self, real, *command):
        """vfpass completes or rolls back its own operations, so after a failure a second run continues."""
        found = real.run(*command)
        if found.code != program.DONE:
            self.fail("\n".join(failures_of(found.document)) or found.reason())
        self.result["changed"] = True


def main():
    arguments = dict(
        policy=dict(type="dict"),
        mappings=dict(type="list", elements="dict", default=[]),
        purge=dict(type="bool", default=False),
        apply=dict(type="bool", default=True),
        allow_disruption=dict(type="bool", default=False),
        attach=dict(type="bool", default=True),
        scope=dict(type="str", choices=["both", "config", "live"], default="both"),
    )
    arguments.update(program.ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    host = Host(module)
    host.run()
    module.exit_json(**host.result)


if __name__ == "__main__":
    main()
