// SPDX-License-Identifier: GPL-2.0
/* The netdev of a VF that is bound to this driver, on the host or in a guest. */
#include <linux/etherdevice.h>

#include "netdev.h"

static const struct net_device_ops ethernet_vf_ops = {
	.ndo_init = port_init,
	.ndo_uninit = port_uninit,
	.ndo_open = port_open,
	.ndo_stop = port_stop,
	.ndo_start_xmit = port_xmit,
	.ndo_get_stats64 = dev_get_tstats64,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static const struct net_device_ops infiniband_vf_ops = {
	.ndo_init = port_init,
	.ndo_uninit = port_uninit,
	.ndo_open = port_open,
	.ndo_stop = port_stop,
	.ndo_start_xmit = port_xmit,
	.ndo_get_stats64 = dev_get_tstats64,
};

/*
 * As mlx5e_set_netdev_dev_addr(): if the vport has no MAC, the VF draws a random
 * one at each probe. GUIDs are used as they are, even if zero.
 */
static void vf_set_address(struct net_device *netdev, struct vport *vport)
{
	struct eswitch *esw = vport->eswitch;

	mutex_lock(&esw->lock);
	if (esw->infiniband)
		netdev_set_guid(netdev, vport->port_guid);
	else if (is_zero_ether_addr(vport->mac))
		eth_hw_addr_random(netdev);
	else
		eth_hw_addr_set(netdev, vport->mac);
	mutex_unlock(&esw->lock);
}

struct net_device *vf_netdev_create(struct pci_dev *pdev, struct vport *vport)
{
	bool infiniband = vport->eswitch->infiniband;
	struct net_device *netdev;
	int err;

	netdev = netdev_alloc(pdev, vport->eswitch, vport,
			      infiniband ? &infiniband_vf_ops : &ethernet_vf_ops);
	if (!netdev)
		return ERR_PTR(-ENOMEM);
	vf_set_address(netdev, vport);
	err = register_netdev(netdev);
	if (err) {
		free_netdev(netdev);
		return ERR_PTR(err);
	}
	return netdev;
}
