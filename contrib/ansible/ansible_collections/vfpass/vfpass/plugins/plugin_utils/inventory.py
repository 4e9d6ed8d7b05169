"""Reads the fleet from Ansible's variables: those of every host of the inventory, whatever --limit and serial select. Facts of hosts
do not count."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.errors import AnsibleActionFail

from .model import Fleet
from .variables import Variables

NAMES = ("vfpass_vms", "vfpass_host_policy")


def read_fleet(action, task_vars):
    """Of the task's argument `group`. Templates are evaluated in the variables of the host that they belong to."""
    variables = Variables(action, task_vars)
    group = action._task.args.get("group", "all")
    if group not in task_vars["groups"]:
        raise AnsibleActionFail("group: the inventory has no group %s; correct the name" % group)
    fleet = Fleet(variables.get("vfpass_fleet"))
    hosts = 0
    for host in task_vars["groups"][group]:
        raw = variables.hostvars.raw_get(host)
        if not any(name in raw for name in NAMES):
            continue
        hosts += 1
        own = variables.hostvars[host]  # evaluates one variable at a time
        try:
            vms, policy = (own[name] if name in raw else None for name in NAMES)
        except Exception as error:  # pylint: disable=broad-except  # an undefined variable, a wrong filter argument
            fleet.add_mistake(host, "-", "vfpass_vms", str(error), "correct the template; facts of hosts are not used")
            continue
        fleet.add_host(host, vms if vms is not None else [], policy)
    if hosts == 0:
        raise AnsibleActionFail("group: no host of %s has vfpass_vms or vfpass_host_policy in the inventory; set them there (docs/fleet.md)"
                                % group)
    return fleet
