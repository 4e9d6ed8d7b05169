"""Runs on the controller: calls the module on the host and checks its reply."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible_collections.vfpass.vfpass.plugins.plugin_utils.host_reply import HostAction, is_dict, is_list_of


class ActionModule(HostAction):
    MODULE = "vfpass.vfpass.host"
    REPLY = {"files": is_list_of(str), "host_steps": is_list_of(dict), "vms": is_dict}

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        result.update(self.call(task_vars))
        return result
