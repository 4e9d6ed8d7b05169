"""Files on the controller."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import tempfile

from urllib.parse import quote

from ansible.errors import AnsibleActionFail

LARGEST_REPORT = 16 << 20


def write(path, text):
    """In one step, so that nobody reads half a file."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".vfpass-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def component(name):
    """A name as one component of a path, which is neither hidden nor a link to the directory above."""
    quoted = quote(name, safe=" ")
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted


def keep_report(directory, host, name, document):
    """Writes DIRECTORY/HOST/NAME.json. Host and name are ours, the document is the host's."""
    text = json.dumps(document, indent=4, sort_keys=True) + "\n"
    if len(text) > LARGEST_REPORT:
        raise AnsibleActionFail("%s: the report is larger than %d MiB; it was not kept" % (name, LARGEST_REPORT >> 20))
    path = os.path.join(os.path.expanduser(directory), component(host), component(name) + ".json")
    try:
        write(path, text)
    except OSError as error:
        raise AnsibleActionFail("%s: cannot write the report: %s" % (path, error.strerror))
