"""The mapping that a host proposes. It is data of that host, and Ansible evaluates host_vars as templates on the controller."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re

import yaml

from ansible.errors import AnsibleActionFail

from ansible_collections.vfpass.vfpass.plugins.module_utils import yaml_text

from .controller_files import component
from .host_reply import printable

LARGEST = 256 << 10
KEYS = frozenset(["version", "vm", "topology", "gpus", "functions", "nvlink", "vfs"])
TEMPLATE = re.compile(r"\{[{%#]|[#%}]\}")
DEEPEST = 6


def _refuse(reason):
    raise AnsibleActionFail("the host's proposal %s; examine the host" % reason)


def _check(value, depth=0):
    """Only plain data without templates. The loader builds nothing else, but aliases could repeat it without end."""
    if depth > DEEPEST:
        _refuse("is nested too deeply")
    if isinstance(value, dict):
        for key, each in value.items():
            _check(key, depth + 1)
            _check(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            _check(each, depth + 1)
    elif isinstance(value, str):
        if TEMPLATE.search(value):
            _refuse("has a template")
        if printable(value) != value or "\n" in value:
            _refuse("has control characters")
    elif not isinstance(value, (bool, int)):
        _refuse("has a value that is neither text nor number")


def read_proposal(text, vm):
    """The mapping of this VM."""
    if len(text) > LARGEST:
        _refuse("is larger than %d KiB" % (LARGEST >> 10))
    # Anchors and aliases make a small text large.
    if re.search(r"(?m)(^|[\s\[{,:-])[&*]\w", text):
        _refuse("has anchors")
    try:
        mapping = yaml.safe_load(text)
    except yaml.YAMLError:
        _refuse("is no YAML")
    if not isinstance(mapping, dict) or not set(mapping) <= KEYS or mapping.get("vm") != vm:
        _refuse("is no mapping of VM %s" % vm)
    _check(mapping)
    return mapping


def _comments(text):
    """The reasons for the selection."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("#") and "$schema=" not in line]
    return "".join("#   %s\n" % printable(line.lstrip("# ")) for line in lines)


def text_of(host, text, mapping):
    return ("# Proposed by `vfpass init` on %s. Add tenant and addresses (docs/fleet.md), then remove this line. The host's reasons:\n%s%s"
            % (host, _comments(text), yaml_text.document({"vfpass_vms": [{"mapping": mapping}]})))


def variables_file(directory, host):
    """Where Ansible reads it. It reads a directory with the host's name and ignores a file beside it, or the other way round."""
    name = component(host)
    own = os.path.join(directory, name)
    if os.path.isdir(own):
        return os.path.join(own, "vfpass.yml")
    for other in (own, own + ".yaml", own + ".json"):
        if os.path.exists(other):
            raise AnsibleActionFail("%s exists: make a directory %s, and move the file into it" % (other, own))
    return own + ".yml"
