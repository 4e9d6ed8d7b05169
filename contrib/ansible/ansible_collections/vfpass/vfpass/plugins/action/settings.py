"""Runs on the controller: evaluates variables without facts of hosts."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.vfpass.vfpass.plugins.plugin_utils.variables import Variables


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(["names"])

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        names = self._task.args.get("names")
        if not isinstance(names, list):
            raise AnsibleActionFail("names: expected a list of names of variables")
        variables = Variables(self, task_vars)
        result.update(changed=False, variables={name: variables[name] for name in names if name in variables})
        return result
