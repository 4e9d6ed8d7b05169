"""MAC addresses and GUIDs: reading, those that vfpass derives for `auto`, and a scheme for whole fleets."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .hashes import xxh3_64

MAC = re.compile(r"^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$|^(?:[0-9a-f]{2}-){5}[0-9a-f]{2}$", re.IGNORECASE)
GUID = re.compile(r"^(?:[0-9a-f]{2}:){7}[0-9a-f]{2}$|^(?:[0-9a-f]{2}-){7}[0-9a-f]{2}$"
                  r"|^(?:[0-9a-f]{4}:){3}[0-9a-f]{4}$|^0x[0-9a-f]{16}$", re.IGNORECASE)
UUID = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)


def _digits(text):
    return re.sub(r"^0x|[:-]", "", text).lower()


def _with_colons(number, count):
    return ":".join("%02x" % byte for byte in number.to_bytes(count, "big"))


def read_mac(text):
    """The address in lower case with colons, or None if it is not the unicast address of a VF."""
    if not isinstance(text, str) or not MAC.match(text):
        return None
    number = int(_digits(text), 16)
    if number == 0 or (number >> 40) & 1:
        return None
    return _with_colons(number, 6)


def read_guid(text):
    """The GUID in lower case with colons, or None. Subnet managers ignore ports whose GUID is all zeros or all ones."""
    if not isinstance(text, str) or not GUID.match(text):
        return None
    number = int(_digits(text), 16)
    return None if number in (0, (1 << 64) - 1) else _with_colons(number, 8)


def _automatic(role, uuid, entry):
    return xxh3_64(("vfpass/1/%s/%s/%s/0" % (role, uuid.lower(), entry)).encode())


def automatic_mac(uuid, entry):
    """What vfpass derives for `mac: auto` (src/plan/choose_addresses.cpp), unless another VM of the host has the address already."""
    data = bytearray(_automatic("mac", uuid, entry).to_bytes(8, "little")[:6])
    data[0] = (data[0] & 0xfc) | 0x02
    return ":".join("%02x" % byte for byte in data)


def automatic_guid(uuid, entry, role):
    """The same for `node-guid` and `port-guid`."""
    number = _automatic(role, uuid, entry)
    first = ((number >> 56) & 0xfc) | 0x02
    return _with_colons((number & ((1 << 56) - 1)) | (first << 56), 8)


def _field(name, value, most):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError("%s: expected a number from 0 to %d, found %r" % (name, most, value))
    return value


def _placed(fleet, host, rail, vf):
    """02 is a locally administered unicast address; then fleet, host (two bytes), rail and VF."""
    return ((0x02 << 40) | (_field("fleet", fleet, 255) << 32) | (_field("host", host, 65535) << 16)
            | (_field("rail", rail, 255) << 8) | _field("vf", vf, 255))


def rail_mac(host, rail, vf=0, fleet=0):
    return _with_colons(_placed(fleet, host, rail, vf), 6)


def rail_guid(host, rail, vf=0, fleet=0, role="port"):
    """The same six bytes, a zero, and 1 for the node or 2 for the port."""
    if role not in ("node", "port"):
        raise ValueError("role: expected node or port, found %r" % (role,))
    return _with_colons((_placed(fleet, host, rail, vf) << 16) | (1 if role == "node" else 2), 8)
