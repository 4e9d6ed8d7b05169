// SPDX-License-Identifier: GPL-2.0
/*
 * What the netdevs of PF and VF have in common. There is no wire unless a guest
 * sets one up (wire.c): a frame that is sent is counted and freed, and no frame
 * is ever received.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/module.h>

#include "netdev.h"
#include "params.h"
#include "unaligned.h"

#define LINK_SPEED		SPEED_100000
#define ETHERNET_MAX_MTU	9978
#define IPOIB_MTU		2044
#define IPOIB_MAX_MTU		4092
#define IPOIB_GUID_OFFSET	12	/* after queue pair number and GID prefix */

/* RFC 4391: queue pair 0xffffff and the IPv4 broadcast group. */
static const u8 ipoib_broadcast[INFINIBAND_ALEN] = {
	0x00, 0xff, 0xff, 0xff,
	0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff,
};

int port_init(struct net_device *netdev)
{
	netdev->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
	return netdev->tstats ? 0 : -ENOMEM;
}

void port_uninit(struct net_device *netdev)
{
	wire_remove(netdev);
	free_percpu(netdev->tstats);
}

int port_open(struct net_device *netdev)
{
	struct port *port = netdev_priv(netdev);

	if (port->vport) {
		vport_netdev_up(port->vport, netdev);
	} else {
		netif_carrier_on(netdev);
		eswitch_set_uplink(port->eswitch, true);
	}
	netif_start_queue(netdev);
	return 0;
}

int port_stop(struct net_device *netdev)
{
	struct port *port = netdev_priv(netdev);

	netif_stop_queue(netdev);
	if (port->vport) {
		vport_netdev_down(port->vport, netdev);
	} else {
		eswitch_set_uplink(port->eswitch, false);
		netif_carrier_off(netdev);
	}
	return 0;
}

netdev_tx_t port_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct port *port = netdev_priv(netdev);
	struct net_device *wire = rcu_dereference_bh(port->wire);

	dev_sw_netstats_tx_add(netdev, 1, skb->len);
	if (port->vport)
		vport_count_tx(port->vport, skb->len);
	if (wire) {
		skb->dev = wire;
		dev_queue_xmit(skb);
	} else {
		dev_consume_skb_any(skb);
	}
	return NETDEV_TX_OK;
}

/* mlx5 marks an IPoIB netdev in the driver's name. */
static void get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct port *port = netdev_priv(netdev);

	strscpy(info->driver, port->eswitch->infiniband ?
		KBUILD_MODNAME "[ib_ipoib]" : KBUILD_MODNAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(port->pdev), sizeof(info->bus_info));
	param_firmware_version(info->fw_version, sizeof(info->fw_version));
}

static int get_link_ksettings(struct net_device *netdev,
			      struct ethtool_link_ksettings *settings)
{
	bool up = netif_carrier_ok(netdev);

	settings->base.speed = up ? LINK_SPEED : SPEED_UNKNOWN;
	settings->base.duplex = up ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	settings->base.port = PORT_OTHER;
	return 0;
}

static const struct ethtool_ops port_ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link_ksettings,
};

static void ethernet_setup(struct net_device *netdev)
{
	ether_setup(netdev);
	netdev->max_mtu = ETHERNET_MAX_MTU;
}

static void ipoib_setup(struct net_device *netdev)
{
	netdev->type = ARPHRD_INFINIBAND;
	netdev->addr_len = INFINIBAND_ALEN;
	netdev->flags = IFF_BROADCAST | IFF_MULTICAST;
	netdev->mtu = IPOIB_MTU;
	netdev->max_mtu = IPOIB_MAX_MTU;
	memcpy(netdev->broadcast, ipoib_broadcast, INFINIBAND_ALEN);
}

void netdev_set_guid(struct net_device *netdev, u64 port_guid)
{
	u8 address[INFINIBAND_ALEN] = { [4] = 0xfe, [5] = 0x80 };

	put_unaligned_be64(port_guid, address + IPOIB_GUID_OFFSET);
	dev_addr_set(netdev, address);
}

struct net_device *netdev_alloc(struct pci_dev *pdev, struct eswitch *esw,
				struct vport *vport,
				const struct net_device_ops *ops)
{
	struct net_device *netdev;
	struct port *port;

	if (esw->infiniband)
		netdev = alloc_netdev(sizeof(*port), "ib%d", NET_NAME_ENUM, ipoib_setup);
	else
		netdev = alloc_netdev(sizeof(*port), "eth%d", NET_NAME_ENUM, ethernet_setup);
	if (!netdev)
		return NULL;

	port = netdev_priv(netdev);
	port->pdev = pdev;
	port->eswitch = esw;
	port->vport = vport;
	netdev->netdev_ops = ops;
	netdev->ethtool_ops = &port_ethtool_ops;
	SET_NETDEV_DEV(netdev, &pdev->dev);
	netif_carrier_off(netdev);
	return netdev;
}

void netdev_destroy(struct net_device *netdev)
{
	unregister_netdev(netdev);
	free_netdev(netdev);
}
