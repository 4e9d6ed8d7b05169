"""Variables as Ansible evaluates them for a task, but without facts of hosts.

A module's reply can contain `ansible_facts`. Ansible keeps them for the host, and they override the variables of the inventory,
`inventory_hostname` included (VariableManager.get_vars in ansible/vars/manager.py). So a hostile host could otherwise decide what
is checked, written on the controller or given to another tenant. Everything that the operator sets counts as usual: inventory,
variables of the play and of the role, set_fact, extra variables."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import copy
import inspect

from ansible.errors import AnsibleActionFail
from ansible.template import Templar
from ansible.vars.hostvars import HostVars


class NoFacts(dict):
    """A cache of facts that has none. ansible-core asks it with {} as default, 2.22 without and expects KeyError instead."""

    def get(self, host, default=None):
        return {}


def host_name(task_vars):
    """The name in the inventory of the task's host. Facts contain every fact by its name, so a false one shows there."""
    if "inventory_hostname" in (task_vars.get("ansible_facts") or {}):
        raise AnsibleActionFail("the host returned a fact named inventory_hostname, which would replace its name; examine the host, and "
                                "clear its cached facts (ansible-playbook --flush-cache)")
    return task_vars["inventory_hostname"]


def hostvars_without_facts(task_vars):
    """`hostvars` with a copy of Ansible's variable manager that has no facts."""
    known = task_vars["hostvars"]
    manager = copy.copy(known._variable_manager)
    manager._loader = known._loader  # the copy, as of a pickled one, lacks it
    manager._fact_cache = NoFacts()
    return HostVars(inventory=known._inventory, variable_manager=manager, loader=known._loader)


class Variables:
    """The task's variables without facts."""

    def __init__(self, action, task_vars):
        hostvars = hostvars_without_facts(task_vars)
        self.host = host_name(task_vars)
        get_vars = hostvars._variable_manager.get_vars
        # ansible-core 2.22 never evaluates `delegate_to` there, and has no such argument.
        undelegated = {"include_delegate_to": False} if "include_delegate_to" in inspect.signature(get_vars).parameters else {}
        # Names of hosts: the arguments save the selection of hosts, which takes long in large inventories.
        self._variables = get_vars(
            play=action._task.play, host=hostvars._inventory.get_host(self.host), task=action._task,
            _hosts=task_vars.get("ansible_play_batch"), _hosts_all=task_vars.get("ansible_play_hosts_all"), **undelegated)
        self._templar = Templar(loader=hostvars._loader, variables=self._variables)
        self.hostvars = hostvars

    def __contains__(self, name):
        return name in self._variables

    def __getitem__(self, name):
        """Evaluated. Raises AnsibleError for an undefined variable in a template."""
        return self._templar.template(self._variables[name])

    def get(self, name, default=None):
        return self[name] if name in self else default
