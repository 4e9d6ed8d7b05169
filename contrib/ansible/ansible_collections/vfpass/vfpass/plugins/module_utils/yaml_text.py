"""Writes YAML that vfpass reads, without PyYAML, which hosts may lack."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

PLAIN = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]*$")
# YAML 1.1 reads these as other types.
RESERVED = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n"])


def _scalar(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return json.dumps(value)
    text = str(value)
    if PLAIN.match(text) and text.lower() not in RESERVED:
        return text
    return json.dumps(text, ensure_ascii=False)


def _is_flat(value):
    """Whether it fits into one line: scalars, and collections of at most one level below."""
    children = value.values() if isinstance(value, dict) else value
    return all(not isinstance(child, (dict, list)) for child in children)


def _flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join("%s: %s" % (_scalar(key), _flow(child)) for key, child in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(child) for child in value) + "]"
    return _scalar(value)


def _lines(value, indent):
    """Lines of a collection that is neither empty nor flat."""
    pad = "  " * indent
    items = value.items() if isinstance(value, dict) else ((None, child) for child in value)
    for key, child in items:
        begin = pad + ("- " if key is None else _scalar(key) + ":")
        if not isinstance(child, (dict, list)) or _is_flat(child):
            yield begin + ("" if key is None else " ") + _flow(child)
        elif key is None:
            inner = list(_lines(child, indent + 1))
            yield begin + inner[0].lstrip()
            for line in inner[1:]:
                yield line
        else:
            yield begin
            for line in _lines(child, indent + 1):
                yield line


def document(value):
    """A mapping as a YAML document; its own keys always are on lines of their own."""
    return "".join(line + "\n" for line in _lines(value, 0))
