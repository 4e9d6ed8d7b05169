// SPDX-License-Identifier: GPL-2.0
/* The PF's netdev, through which rtnetlink reads and writes the vports. */
#include <linux/etherdevice.h>

#include "netdev.h"
#include "params.h"

static struct eswitch *netdev_eswitch(struct net_device *netdev)
{
	struct port *port = netdev_priv(netdev);

	return port->eswitch;
}

static int set_vf_mac(struct net_device *netdev, int vf, u8 *mac)
{
	return vport_set_mac(netdev_eswitch(netdev), vf, mac);
}

static int set_vf_vlan(struct net_device *netdev, int vf, u16 vlan, u8 qos,
		       __be16 proto)
{
	return vport_set_vlan(netdev_eswitch(netdev), vf, vlan, qos, proto);
}

static int set_vf_rate(struct net_device *netdev, int vf, int min_rate, int max_rate)
{
	return vport_set_rate(netdev_eswitch(netdev), vf, min_rate, max_rate);
}

static int set_vf_spoofchk(struct net_device *netdev, int vf, bool on)
{
	return vport_set_spoofchk(netdev_eswitch(netdev), vf, on);
}

static int set_vf_trust(struct net_device *netdev, int vf, bool on)
{
	return vport_set_trust(netdev_eswitch(netdev), vf, on);
}

static int set_vf_link_state(struct net_device *netdev, int vf, int state)
{
	return vport_set_link_state(netdev_eswitch(netdev), vf, state);
}

/*
 * Only the netdev refuses a GUID, like an ipoib without this operation:
 * MLNX_OFED's files still accept it.
 */
static int set_vf_guid(struct net_device *netdev, int vf, u64 guid, int type)
{
	bool node = type == IFLA_VF_IB_NODE_GUID;

	if (!node && type != IFLA_VF_IB_PORT_GUID)
		return -EINVAL;
	if (param_refuses(node ? "node_guid" : "port_guid"))
		return -EOPNOTSUPP;
	if (node)
		return vport_set_node_guid(netdev_eswitch(netdev), vf, guid);
	return vport_set_port_guid(netdev_eswitch(netdev), vf, guid);
}

static int get_vf_config(struct net_device *netdev, int vf, struct ifla_vf_info *ivi)
{
	return vport_get_config(netdev_eswitch(netdev), vf, ivi);
}

static int get_vf_guid(struct net_device *netdev, int vf,
		       struct ifla_vf_guid *node_guid, struct ifla_vf_guid *port_guid)
{
	return vport_get_guids(netdev_eswitch(netdev), vf,
			       &node_guid->guid, &port_guid->guid);
}

static int get_vf_stats(struct net_device *netdev, int vf, struct ifla_vf_stats *stats)
{
	return vport_get_stats(netdev_eswitch(netdev), vf, stats);
}

/* mlx5 numbers the ports of a card by PCI function. */
static int get_phys_port_name(struct net_device *netdev, char *name, size_t size)
{
	struct port *port = netdev_priv(netdev);

	if (snprintf(name, size, "p%u", PCI_FUNC(port->pdev->devfn)) >= size)
		return -EINVAL;
	return 0;
}

static const struct net_device_ops ethernet_pf_ops = {
	.ndo_init = port_init,
	.ndo_uninit = port_uninit,
	.ndo_open = port_open,
	.ndo_stop = port_stop,
	.ndo_start_xmit = port_xmit,
	.ndo_get_stats64 = dev_get_tstats64,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_get_phys_port_name = get_phys_port_name,
	.ndo_set_vf_mac = set_vf_mac,
	.ndo_set_vf_vlan = set_vf_vlan,
	.ndo_set_vf_rate = set_vf_rate,
	.ndo_set_vf_spoofchk = set_vf_spoofchk,
	.ndo_set_vf_trust = set_vf_trust,
	.ndo_set_vf_link_state = set_vf_link_state,
	.ndo_get_vf_config = get_vf_config,
	.ndo_get_vf_stats = get_vf_stats,
};

/* IPoIB has no ndo_set_vf_mac: the GUIDs take its place. */
static const struct net_device_ops infiniband_pf_ops = {
	.ndo_init = port_init,
	.ndo_uninit = port_uninit,
	.ndo_open = port_open,
	.ndo_stop = port_stop,
	.ndo_start_xmit = port_xmit,
	.ndo_get_stats64 = dev_get_tstats64,
	.ndo_set_vf_link_state = set_vf_link_state,
	.ndo_set_vf_guid = set_vf_guid,
	.ndo_get_vf_guid = get_vf_guid,
	.ndo_get_vf_config = get_vf_config,
	.ndo_get_vf_stats = get_vf_stats,
};

/* Locally administered, and the same at every boot with the same PCI tree. */
static void set_permanent_address(struct net_device *netdev, bool infiniband)
{
	struct port *port = netdev_priv(netdev);
	struct pci_dev *pdev = port->pdev;
	u8 mac[ETH_ALEN] = {
		0x02, param_host_id, pci_domain_nr(pdev->bus),
		pdev->bus->number, pdev->devfn, 0x00,
	};

	if (infiniband)
		netdev_set_guid(netdev, ether_addr_to_u64(mac) << 16 | 1);
	else
		eth_hw_addr_set(netdev, mac);
}

struct net_device *pf_netdev_create(struct pci_dev *pdev, struct eswitch *esw)
{
	struct net_device *netdev;
	int err;

	netdev = netdev_alloc(pdev, esw, NULL,
			      esw->infiniband ? &infiniband_pf_ops : &ethernet_pf_ops);
	if (!netdev)
		return ERR_PTR(-ENOMEM);
	set_permanent_address(netdev, esw->infiniband);
	err = register_netdev(netdev);
	if (err) {
		free_netdev(netdev);
		return ERR_PTR(err);
	}
	return netdev;
}
