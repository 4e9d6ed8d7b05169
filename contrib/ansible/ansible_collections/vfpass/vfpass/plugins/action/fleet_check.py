"""Runs on the controller: finds the mistakes in all hosts' variables before any host changes."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.plugins.action import ActionBase

from ansible_collections.vfpass.vfpass.plugins.plugin_utils.checks import mistakes
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.inventory import read_fleet


def _line(mistake):
    return "%s, VM %s: %s: %s\n  remedy: %s" % (mistake.host, mistake.vm, mistake.key, mistake.message, mistake.remedy)


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(["group"])

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        fleet = read_fleet(self, task_vars)
        found = mistakes(fleet)
        result.update(changed=False, hosts=len(set(vm.host for vm in fleet.vms) | set(fleet.policies)), vms=len(fleet.vms),
                      vfs=sum(1 for vf in fleet.vfs()), mistakes=[dict(mistake._asdict()) for mistake in found])
        if found:
            result.update(failed=True, msg="%d %s:\n%s" % (len(found), "mistake" if len(found) == 1 else "mistakes",
                                                           "\n".join(_line(mistake) for mistake in found)))
        return result
