"""Reads the fleet from Ansible's variables: those of every host of the inventory, whatever --limit and serial select."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .model import Fleet

NAMES = ("vfpass_vms", "vfpass_host_policy")


def read_fleet(task_vars, templar, group):
    """Templates are evaluated in the variables of the host that they belong to."""
    settings = templar.template(task_vars.get("vfpass_fleet") or {})
    fleet = Fleet(settings)
    hostvars = task_vars["hostvars"]
    for host in task_vars["groups"].get(group, ()):
        raw = hostvars.raw_get(host)
        if not any(name in raw for name in NAMES):
            continue
        own = hostvars[host]  # evaluates one variable at a time
        try:
            vms, policy = (own[name] if name in raw else None for name in NAMES)
        except Exception as error:  # pylint: disable=broad-except  # an undefined variable, a wrong filter argument
            fleet.add_mistake(host, "-", "vfpass_vms", str(error), "correct the template")
            continue
        fleet.add_host(host, vms if vms is not None else [], policy)
    return fleet
