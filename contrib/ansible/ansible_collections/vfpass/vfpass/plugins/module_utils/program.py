"""Calls of the vfpass program on the host. Its JSON is described in docs/json."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

ARGUMENTS = dict(
    program=dict(type="str", default="vfpass"),
    config_dir=dict(type="path", default="/etc/vfpass"),
    state_dir=dict(type="path"),
    run_dir=dict(type="path"),
    connect=dict(type="str"),
    sysroot=dict(type="path"),
)
# Exit codes of vfpass.
DONE, FAILED, BAD_INPUT, PENDING, NOT_VERIFIED, REFUSED, UNVERIFIED = range(7)


class Result:
    def __init__(self, code, output, errors):
        self.code, self.output, self.errors = code, output, errors.strip()

    @property
    def ended(self):
        """Whether vfpass itself chose the exit code; a program that was killed has another one."""
        return self.code in range(DONE, UNVERIFIED + 1)

    @property
    def document(self):
        """The JSON document that the command is for, or None. An error has a document of its own."""
        try:
            found = json.loads(self.output)
        except ValueError:
            return None
        return found if isinstance(found, dict) and "error" not in found else None

    def reason(self):
        """What vfpass reports about a failure, as one text: the error of its document, otherwise what it wrote to stderr."""
        return self._error() or self.errors or "vfpass failed with exit code %d and without a message" % self.code

    def _error(self):
        try:
            error = json.loads(self.output)["error"]
            return "; ".join(text for text in (error["message"], error.get("remedy")) if text)
        except (ValueError, KeyError, TypeError):
            return ""


class Program:
    """`read_only` refuses everything that changes a host, so that check mode cannot call it by mistake."""

    READ_ONLY = (("check",), ("init",), ("plan",), ("host", "show"), ("host", "apply", "--dry-run"), ("detach", "--dry-run"), ("status",),
                 ("doctor",), ("topo",))

    def __init__(self, module, read_only, config_dir=None):
        self.module, self.read_only = module, read_only
        parameters = module.params
        self.path = module.get_bin_path(parameters["program"], required=True)
        self.options = ["--config-dir", config_dir or parameters["config_dir"]]
        for name in ("state_dir", "run_dir", "connect", "sysroot"):
            if parameters[name]:
                self.options += ["--" + name.replace("_", "-"), parameters[name]]

    def run(self, *command):
        if self.read_only and not any(command[:len(allowed)] == allowed for allowed in self.READ_ONLY):
            raise AssertionError("%s in check mode" % (command,))
        code, output, errors = self.module.run_command([self.path] + self.options + list(command),
                                                       environ_update={"LC_ALL": "C.UTF-8"})
        return Result(code, output, errors)
