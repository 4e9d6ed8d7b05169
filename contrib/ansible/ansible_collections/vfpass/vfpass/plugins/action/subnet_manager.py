"""Runs on the controller: writes the files for the subnet manager from all hosts' variables."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.vfpass.vfpass.plugins.plugin_utils import subnet_files
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.checks import mistakes
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.controller_files import write
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.inventory import read_fleet


def _read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(["directory", "group", "ipoib"])

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        directory = self._task.args.get("directory")
        if not directory:
            raise AnsibleActionFail("directory is missing")
        fleet = read_fleet(self, task_vars)
        self._refuse(fleet)
        ipoib = boolean(self._task.args.get("ipoib", True))
        files = {"partitions.conf": subnet_files.partitions_conf(fleet, ipoib), "port-guids.txt": subnet_files.guid_list(fleet),
                 "port-guids.csv": subnet_files.table(fleet)}
        result.update(changed=False, diff=[], guids=len(subnet_files.infiniband_vfs(fleet)))
        for name in sorted(files):
            self._update(os.path.join(os.path.expanduser(directory), name), files[name], result)
        result["files"] = sorted(files)
        return result

    def _refuse(self, fleet):
        found = ["%s: %s: %s" % (each.host, each.key, each.message) for each in mistakes(fleet)]
        found += ["%s, VM %s: %s: the automatic GUID depends on the VM's UUID: add uuid to the item of vfpass_vms, as `virsh domuuid` "
                  "prints it" % (vf.vm.host, vf.vm.name, vf.name) for vf in subnet_files.unknown(fleet)]
        if found:
            raise AnsibleActionFail("no file was written:\n" + "\n".join(found))

    def _update(self, path, text, result):
        before = _read(path)
        if before == text:
            return
        result["changed"] = True
        result["diff"].append({"before_header": path, "after_header": path, "before": before or "", "after": text})
        if not self._play_context.check_mode:
            write(path, text)
