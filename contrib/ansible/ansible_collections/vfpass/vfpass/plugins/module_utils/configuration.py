"""The files in /etc/vfpass: those that are there, those that are wanted, and a copy to plan with before anything changes."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import contextlib
import os
import re
import shutil
import tempfile

from urllib.parse import quote

from . import yaml_text

HEADER = "# Managed by Ansible (vfpass.vfpass.host); changes are overwritten.\n"
KEY = "seal.key"


def file_name(vm):
    """A name for the VM's mapping. vfpass reads every .yaml file in vms/ that is not hidden, whatever its name."""
    return re.sub(r"^\.", "%2E", quote(vm, safe=" ")) + ".yaml"


def wanted_files(policy, mappings):
    """Text by path relative to the configuration directory."""
    files = {}
    if policy is not None:
        files["host.yaml"] = HEADER + yaml_text.document(policy)
    for mapping in mappings:
        files[os.path.join("vms", file_name(mapping["vm"]))] = HEADER + yaml_text.document(mapping)
    return files


def _read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def present_files(directory):
    """The files that vfpass reads. A mapping with another name than ours may be of a VM that we have a mapping for."""
    found = {}
    vms = os.path.join(directory, "vms")
    names = sorted(os.listdir(vms)) if os.path.isdir(vms) else []
    paths = [os.path.join("vms", name) for name in names if name.endswith(".yaml") and not name.startswith(".")]
    for path in ["host.yaml"] + paths:
        if os.path.exists(os.path.join(directory, path)):
            found[path] = _read(os.path.join(directory, path))
    return found


def write(directory, path, text, mode=0o644):
    """In one step: the hook may read the directory at any time. vfpass refuses files that others can write."""
    target = os.path.join(directory, path)
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        os.makedirs(parent, 0o755)
    handle, temporary = tempfile.mkstemp(dir=parent, prefix=".vfpass-")
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        os.fsync(handle)
    os.chmod(temporary, mode)
    os.rename(temporary, target)


@contextlib.contextmanager
def staged(module, directory, present, files):
    """A directory with these files, to plan with: the real one if it has them already, otherwise a copy that nobody else can
    read. Its key is the host's, since vfpass takes only metadata sealed with the key for its own; it refuses a link to it."""
    if present == files:
        yield directory
        return
    copy = tempfile.mkdtemp(dir=module.tmpdir)
    try:
        os.mkdir(os.path.join(copy, "vms"), 0o700)
        for path, text in files.items():
            write(copy, path, text)
        if os.path.exists(os.path.join(directory, KEY)):
            write(copy, KEY, _read(os.path.join(directory, KEY)), 0o600)
        yield copy
    finally:
        shutil.rmtree(copy)


def differences(present, wanted):
    """Ansible's form of diffs."""
    result = []
    for path in sorted(set(present) | set(wanted)):
        before, after = present.get(path, ""), wanted.get(path, "")
        if before != after:
            result.append(dict(before_header=path, after_header=path, before=before, after=after))
    return result


def plan_text(document):
    """The steps of `vfpass plan --json` as text, with the difference of the domain XML."""
    lines = ["%s\n  because %s" % (step["action"], step["reason"]) for step in document.get("steps", [])]
    return "\n".join(lines + [document.get("xml_diff", "")]).rstrip("\n") + "\n"
