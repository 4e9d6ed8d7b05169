"""Runs on the controller: calls the module on the host, checks its reply and keeps it as reports."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible_collections.vfpass.vfpass.plugins.plugin_utils.controller_files import keep_report
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.host_reply import HostAction, is_dict, is_exit_code
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.variables import host_name

DOCUMENTS = ("host", "status", "doctor", "topo")


class ActionModule(HostAction):
    MODULE = "vfpass.vfpass.host_info"
    REPLY = {"documents": is_dict, "exit_codes": is_dict}

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        result.update(self.call(task_vars))
        if result.get("failed"):
            return result
        # Our names, in our order: those of the reply could lead out of the directory.
        wanted = self._task.args.get("gather", ["host", "status"])
        names = [name for name in DOCUMENTS if name in wanted]
        missing = [name for name in names if not is_dict(result["documents"].get(name)) or not is_exit_code(result["exit_codes"].get(name))]
        if missing:
            result.update(failed=True, msg="the host's reply has no document %s; examine the host" % ", ".join(missing))
            return result
        for key in ("documents", "exit_codes"):
            result[key] = {name: result[key][name] for name in names}
        directory = self._task.args.get("reports_directory")
        if directory and not self._task.check_mode:
            for name in names:
                keep_report(directory, host_name(task_vars), name, result["documents"][name])
        return result
