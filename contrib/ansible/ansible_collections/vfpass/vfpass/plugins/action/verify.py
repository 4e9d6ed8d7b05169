"""Runs on the controller: calls the module on the host and judges the evidence in its reply."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.vfpass.vfpass.plugins.plugin_utils.controller_files import keep_report
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.host_reply import HostAction, is_dict, is_exit_code, printable
from ansible_collections.vfpass.vfpass.plugins.plugin_utils.variables import host_name

# Exit codes of `vfpass verify` and the result in its report, which at least one of the findings has.
RESULTS = {0: "passed", 4: "failed", 6: "not_observable"}
# Results of findings that an accepted report can have as well.
HARMLESS = ("passed", "waived", "warning")


def _findings(report):
    """Those of a report that need attention, one in each line."""
    lines = []
    for each in report["findings"]:
        if each.get("result") in ("failed", "not_observable"):
            place = "%s %s" % (each.get("key"), each["entry"]) if each.get("entry") else each.get("key")
            remedy = "; remedy: %s" % each["remedy"] if each.get("remedy") else ""
            lines.append("%s: %s: %s%s" % (place, each["result"], each.get("seen"), remedy))
    return printable("\n".join(lines))


def _is_report(report):
    return (is_dict(report.get("domain")) and isinstance(report.get("findings"), list) and bool(report["findings"])
            and all(map(is_dict, report["findings"])))


def problem(vm, exit_code, report, accept_unverified):
    """Why the reply is no evidence that the VM is verified; None if it is. Only what is there counts."""
    if exit_code not in RESULTS:
        return "exit code %d is not one of a verification" % exit_code
    if not _is_report(report):
        return "exit code %d, but no report with findings" % exit_code
    if vm != report["domain"].get("name") and vm.lower() != report["domain"].get("uuid"):
        return "the report is about another VM"
    accepted = (0, 6) if accept_unverified else (0,)
    if exit_code not in accepted:
        return "exit code %d\n%s" % (exit_code, _findings(report))
    found = [each.get("result") for each in report["findings"]]
    result = RESULTS[exit_code]
    if report.get("result") != result or result not in found or any(each != result and each not in HARMLESS for each in found):
        return "exit code %d, but the report does not say so\n%s" % (exit_code, _findings(report))
    return None


class ActionModule(HostAction):
    MODULE = "vfpass.vfpass.verify"
    REPLY = {"exit_code": is_exit_code, "report": is_dict}

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        if self._task.check_mode:
            result.update(skipped=True, msg="not possible in check mode, because vfpass copies its probe into the guest")
            return result
        vm = self._task.args.get("vm")
        if not isinstance(vm, str):
            raise AnsibleActionFail("vm: expected the name or UUID of a VM")
        result.update(self.call(task_vars))
        if result.get("failed"):
            return result
        directory = self._task.args.get("reports_directory")
        if directory:
            keep_report(directory, host_name(task_vars), "verify-" + vm, result["report"])
        found = problem(vm, result["exit_code"], result["report"], boolean(self._task.args.get("accept_unverified", False)))
        if found:
            result.update(failed=True, msg="%s: %s" % (vm, found))
        return result
