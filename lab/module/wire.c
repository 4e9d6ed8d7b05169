// SPDX-License-Identifier: GPL-2.0
/*
 * In a guest: a wire for a VF. The function has no port to send frames through,
 * so another netdev of the guest (virtio-net) serves as the port: it sends the
 * frames of the VF's netdev, and the VF's netdev receives its frames, as with a
 * macvlan in passthru mode. Write that netdev's name to the file "wire" in the
 * VF's directory; mlx5 has no such file.
 */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>

#include "function.h"
#include "netdev.h"

/* eth_type_trans() has set the type by the lower netdev's address: set it by the VF's. */
static void set_packet_type(struct sk_buff *skb, const struct net_device *netdev)
{
	const u8 *destination = eth_hdr(skb)->h_dest;

	if (is_multicast_ether_addr(destination))
		return;
	skb->pkt_type = ether_addr_equal(destination, netdev->dev_addr) ? PACKET_HOST :
									  PACKET_OTHERHOST;
}

static rx_handler_result_t wire_receive(struct sk_buff **pskb)
{
	struct sk_buff *skb = skb_share_check(*pskb, GFP_ATOMIC);
	struct net_device *netdev;

	if (!skb)
		return RX_HANDLER_CONSUMED;
	*pskb = skb;
	netdev = rcu_dereference(skb->dev->rx_handler_data);
	if (!netif_running(netdev)) {
		kfree_skb(skb);
		return RX_HANDLER_CONSUMED;
	}
	skb->dev = netdev;
	set_packet_type(skb, netdev);
	dev_sw_netstats_rx_add(netdev, skb->len + ETH_HLEN);
	return RX_HANDLER_ANOTHER;
}

void wire_remove(struct net_device *netdev)
{
	struct port *port = netdev_priv(netdev);
	struct net_device *lower = rtnl_dereference(port->wire);

	if (!lower)
		return;
	RCU_INIT_POINTER(port->wire, NULL);
	netdev_rx_handler_unregister(lower);	/* waits for readers of both */
	dev_set_promiscuity(lower, -1);
	dev_put(lower);
}

/* The lower netdev has another address, so it must receive every frame. The reference keeps it. */
static int wire_add(struct net_device *netdev, struct net_device *lower)
{
	struct port *port = netdev_priv(netdev);
	int err;

	wire_remove(netdev);
	err = dev_open(lower, NULL);
	if (!err)
		err = netdev_rx_handler_register(lower, wire_receive, netdev);
	if (err)
		return err;
	dev_set_promiscuity(lower, 1);
	dev_hold(lower);
	rcu_assign_pointer(port->wire, lower);
	return 0;
}

static ssize_t wire_store(struct device *dev, struct device_attribute *attribute,
			  const char *buf, size_t count)
{
	struct vf *vf = pci_get_drvdata(to_pci_dev(dev));
	struct net_device *lower;
	char name[IFNAMSIZ];
	int err = -ENODEV;

	if (sscanf(buf, "%15s", name) != 1)
		return -EINVAL;
	rtnl_lock();
	lower = __dev_get_by_name(&init_net, name);
	if (vf->netdev && lower && lower != vf->netdev)
		err = wire_add(vf->netdev, lower);
	rtnl_unlock();
	return err ? err : count;
}
DEVICE_ATTR_WO(wire);
