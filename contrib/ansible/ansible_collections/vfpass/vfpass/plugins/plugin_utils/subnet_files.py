"""Files for the subnet manager: OpenSM's partitions.conf, the port GUIDs, and a table of all InfiniBand VFs."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import csv
import io

HEADER = "# Generated from the inventory by vfpass.vfpass.subnet_manager; changes are overwritten.\n"
COLUMNS = ("host", "vm", "rail", "tenant", "partition", "membership", "node_guid", "port_guid")
# OpenSM merges rules with one P_Key; short lines stay within every parser's limit.
GUIDS_IN_RULE = 16


def _number(guid):
    return "0x" + guid.replace(":", "")


def infiniband_vfs(fleet):
    """Those with a known port GUID."""
    return [vf for vf in fleet.vfs() if vf.is_infiniband and vf.port_guid]


def unknown(fleet):
    """VFs that no file can contain: their GUID is automatic and the VM's UUID is not in the inventory."""
    return [vf for vf in fleet.vfs() if vf.is_infiniband and not vf.port_guid]


def partitions_conf(fleet, ipoib=True):
    text = [HEADER]
    for name in sorted(fleet.tenants, key=str):
        tenant = fleet.tenants[name]
        if tenant.get("partition") is None:
            continue
        guids = sorted(_number(vf.port_guid) for vf in infiniband_vfs(fleet) if vf.vm.tenant == name)
        rule = "%s=0x%04x%s, defmember=%s : " % (name, tenant["partition"] & 0x7fff, ", ipoib" if ipoib else "",
                                               tenant.get("membership", "full"))
        for first in range(0, len(guids), GUIDS_IN_RULE):
            text.append(rule + ", ".join(guids[first:first + GUIDS_IN_RULE]) + " ;\n")
    return "".join(text)


def guid_list(fleet):
    return "".join(sorted(_number(vf.port_guid) + "\n" for vf in infiniband_vfs(fleet)))


def table(fleet):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for vf in sorted(infiniband_vfs(fleet), key=lambda vf: (vf.vm.host, vf.vm.name, vf.name)):
        tenant = fleet.tenants.get(vf.vm.tenant, {})
        partition = tenant.get("partition")
        writer.writerow((vf.vm.host, vf.vm.name, vf.name, vf.vm.tenant or "", "" if partition is None else "0x%04x" % (partition & 0x7fff),
                         tenant.get("membership", "full") if partition is not None else "", vf.node_guid or "", vf.port_guid))
    return text.getvalue()
