// SPDX-License-Identifier: GPL-2.0
/*
 * State for test scripts: the file "vports" in a PF's sysfs directory is a table
 * with one line per VF; the file "vport" in a VF's directory has the values that
 * its driver learned. The lab writes what a VF in a guest has sent to the PF's
 * "vport_traffic". mlx5 has none of these files.
 */
#include <linux/mm.h>
#include <linux/sysfs.h>

#include "function.h"

#define GUID_SIZE	24
#define LINE_SIZE	224

static const char *format_guid(char *text, u64 guid)
{
	__be64 bytes = cpu_to_be64(guid);

	snprintf(text, GUID_SIZE, "%8phC", &bytes);
	return text;
}

static const char *vlan_proto_name(const struct vport *vport)
{
	return vport->vlan_proto == htons(ETH_P_8021AD) ? "802.1ad" : "802.1Q";
}

static const char *on_off(bool on)
{
	return on ? "on" : "off";
}

static int format_head(char *line)
{
	return scnprintf(line, LINE_SIZE,
			 "%-5s %-17s %-4s %-3s %-7s %-8s %-5s %-10s %-10s %-10s %-23s %-23s %-6s %-12s %-16s\n",
			 "index", "mac", "vlan", "qos", "proto", "spoofchk", "trust",
			 "link_state", "min_rate", "max_rate", "node_guid", "port_guid",
			 "writes", "tx_packets", "tx_bytes");
}

static int format_vport(char *line, int index, struct vport *vport)
{
	char node[GUID_SIZE], port[GUID_SIZE];

	return scnprintf(line, LINE_SIZE,
			 "%-5d %-17pM %-4u %-3u %-7s %-8s %-5s %-10s %-10u %-10u %-23s %-23s %-6u %-12lld %-16lld\n",
			 index, vport->mac, vport->vlan, vport->qos,
			 vlan_proto_name(vport), on_off(vport->spoofchk),
			 on_off(vport->trusted), vport_link_state_name(vport->link_state),
			 vport->min_rate, vport->max_rate,
			 format_guid(node, vport->node_guid),
			 format_guid(port, vport->port_guid), vport->writes,
			 atomic64_read(&vport->tx_packets),
			 atomic64_read(&vport->tx_bytes));
}

/*
 * A text attribute is limited to one page, which 127 VFs exceed; a binary one is
 * read in chunks. Fixed column widths keep the chunks aligned if values change.
 */
static ssize_t vports_read(struct file *file, struct kobject *kobj,
			   struct bin_attribute *attribute, char *buf,
			   loff_t offset, size_t size)
{
	struct pf *pf = pci_get_drvdata(to_pci_dev(kobj_to_dev(kobj)));
	struct eswitch *esw = pf->eswitch;
	ssize_t length;
	char *table;
	int i;

	table = kvmalloc_array(esw->total + 1, LINE_SIZE, GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	length = format_head(table);
	mutex_lock(&esw->lock);
	for (i = 0; i < esw->enabled; i++)
		length += format_vport(table + length, i, &esw->vports[i]);
	mutex_unlock(&esw->lock);
	length = memory_read_from_buffer(buf, size, &offset, table, length);
	kvfree(table);
	return length;
}
static BIN_ATTR_RO(vports, 0);

/*
 * "INDEX PACKETS BYTES [PACKETS BYTES]": what the card would have counted as sent
 * and as received by that VF.
 */
static ssize_t vport_traffic_store(struct device *dev,
				   struct device_attribute *attribute,
				   const char *buf, size_t count)
{
	struct pf *pf = pci_get_drvdata(to_pci_dev(dev));
	struct vport_traffic sent = {}, received = {};
	int index, err, numbers;

	numbers = sscanf(buf, "%d %llu %llu %llu %llu", &index, &sent.packets, &sent.bytes,
			 &received.packets, &received.bytes);
	if (numbers != 3 && numbers != 5)
		return -EINVAL;
	err = vport_set_traffic(pf->eswitch, index, &sent, &received);
	return err ? err : count;
}
static DEVICE_ATTR_WO(vport_traffic);

static struct attribute *pf_attributes[] = {
	&dev_attr_vport_traffic.attr,
	NULL
};

static struct bin_attribute *pf_binary_attributes[] = {
	&bin_attr_vports,
	NULL
};

const struct attribute_group pf_show_group = {
	.attrs = pf_attributes,
	.bin_attrs = pf_binary_attributes,
};

static ssize_t vport_show(struct device *dev, struct device_attribute *attribute,
			  char *buf)
{
	struct vf *vf = pci_get_drvdata(to_pci_dev(dev));
	struct vport *vport = vf->vport;
	char node[GUID_SIZE], port[GUID_SIZE];
	ssize_t length;

	mutex_lock(&vport->eswitch->lock);
	length = sysfs_emit(buf,
			    "flavour=%s\nmac=%pM\nnode_guid=%s\nport_guid=%s\nvlan=%u\nlink_state=%s\ntx_packets=%lld\ntx_bytes=%lld\n",
			    vport->eswitch->infiniband ? "infiniband" : "ethernet",
			    vport->mac, format_guid(node, vport->node_guid),
			    format_guid(port, vport->port_guid), vport->vlan,
			    vport_link_state_name(vport->link_state),
			    atomic64_read(&vport->tx_packets),
			    atomic64_read(&vport->tx_bytes));
	mutex_unlock(&vport->eswitch->lock);
	return length;
}
static DEVICE_ATTR_RO(vport);

static struct attribute *vf_attributes[] = {
	&dev_attr_vport.attr,
	&dev_attr_wire.attr,
	NULL
};

const struct attribute_group vf_show_group = {
	.attrs = vf_attributes,
};
