"""Addresses by host, rail and VF number (docs/fleet.md)."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.errors import AnsibleFilterError

from ansible_collections.vfpass.vfpass.plugins.plugin_utils import addresses


def _checked(function):
    def call(host, *arguments, **named):
        try:
            return function(host, *arguments, **named)
        except (TypeError, ValueError) as error:
            raise AnsibleFilterError("%s: %s" % (function.__name__, error))
    return call


class FilterModule(object):
    def filters(self):
        return {"rail_mac": _checked(addresses.rail_mac), "rail_guid": _checked(addresses.rail_guid)}
