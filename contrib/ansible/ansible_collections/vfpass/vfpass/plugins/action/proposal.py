"""Runs on the controller: calls the module on the host, checks the mapping that it returns, and writes it into host_vars."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ansible.errors import AnsibleActionFail

from ansible_collections.vfpass.vfpass.plugins.plugin_utils.controller_files import write
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.host_reply import HostAction
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.proposal import read_proposal, text_of, variables_file
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.variables import host_name


class ActionModule(HostAction):
    MODULE = "vfpass.vfpass.proposal"
    REPLY = {"mapping": lambda value: isinstance(value, str)}

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        result.update(self.call(task_vars))
        text = result.pop("mapping", None)
        if result.get("failed"):
            return result
        host = host_name(task_vars)
        wanted = text_of(host, text, read_proposal(text, self._task.args["vm"]))
        path = variables_file(os.path.expanduser(self._task.args["directory"]), host)
        before = self._present(path)
        if before not in (None, wanted):
            raise AnsibleActionFail("%s exists with another content: compare it with the proposal (`vfpass init` on the host), or move "
                                    "it away" % path)
        result.update(path=path, changed=before is None, diff=[])
        if before is None:
            result["diff"] = [{"before_header": path, "after_header": path, "before": "", "after": wanted}]
            if not self._task.check_mode:
                self._keep(path, wanted)
        return result

    def _present(self, path):
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def _keep(self, path, text):
        try:
            write(path, text)
        except OSError as error:
            raise AnsibleActionFail("%s: cannot write the proposal: %s" % (path, error.strerror))
