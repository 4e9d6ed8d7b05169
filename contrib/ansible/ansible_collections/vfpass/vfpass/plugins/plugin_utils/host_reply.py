"""What a managed host replies, reduced to what the module documents."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.plugins.action import ActionBase


def printable(text):
    """Text for a terminal: control characters, and those that change the direction of text, become escapes."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\\u%04x" % ord(each) for each in text)


def is_list_of(kind):
    return lambda value: isinstance(value, list) and all(isinstance(each, kind) for each in value)


def is_exit_code(value):
    """Of vfpass itself. A program that was killed has another one."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 6


def is_dict(value):
    return isinstance(value, dict)


def _shown_diff(diff):
    """Callbacks print these texts as they are."""
    keys = ("before_header", "after_header", "before", "after", "prepared")
    return [{key: printable(each[key]) for key in keys if isinstance(each.get(key), str)} for each in diff if isinstance(each, dict)]


class HostAction(ActionBase):
    """Runs the module of the same name on the host. The reply is data of that host, so of all its keys only those in REPLY remain, each
    of its type: `ansible_facts` would override the inventory's variables, `skipped` would count as success. A reply without one of
    them is a failure, whatever it says: the module was killed, or the host runs another one."""

    TRANSFERS_FILES = False
    MODULE = None
    REPLY = {}  # check by key

    def call(self, task_vars):
        """The reply, either complete or with `failed` and `msg`."""
        reply = self._execute_module(module_name=self.MODULE, task_vars=task_vars)
        found = {key: reply[key] for key, check in self.REPLY.items() if key in reply and check(reply[key])}
        found["changed"] = reply.get("changed") is True
        for key in ("warnings", "diff"):
            if isinstance(reply.get(key), list):
                found[key] = _shown_diff(reply[key]) if key == "diff" else [printable(str(each)) for each in reply[key]]
        missing = sorted(key for key in self.REPLY if key not in found)
        if reply.get("failed") or reply.get("unreachable"):
            found.update(failed=True, msg=self._reason(reply))
        elif missing:
            found.update(failed=True, msg="the host's reply has no valid %s: the module did not end as it should; examine the host"
                         % ", ".join(missing))
        return found

    def _reason(self, reply):
        """Of modules that end without JSON Ansible keeps the output only."""
        texts = [reply.get(key) for key in ("msg", "module_stderr", "module_stdout")]
        return printable("\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())) or "the module failed"
