/* SPDX-License-Identifier: GPL-2.0 */
/* The netdev of a function, PF or VF, Ethernet or IPoIB. */
#ifndef STANDIN_NETDEV_H
#define STANDIN_NETDEV_H

#include <linux/netdevice.h>
#include <linux/pci.h>

#include "eswitch.h"

struct port {
	struct pci_dev *pdev;
	struct eswitch *eswitch;
	struct vport *vport;		/* NULL: this is the PF's uplink */
	struct net_device __rcu *wire;	/* in a guest: carries the frames, see wire.c */
};

struct net_device *netdev_alloc(struct pci_dev *pdev, struct eswitch *esw,
				struct vport *vport,
				const struct net_device_ops *ops);
void netdev_set_guid(struct net_device *netdev, u64 port_guid);

/* Operations common to the PF's and the VF's netdev. */
int port_init(struct net_device *netdev);
void port_uninit(struct net_device *netdev);
int port_open(struct net_device *netdev);
int port_stop(struct net_device *netdev);
netdev_tx_t port_xmit(struct sk_buff *skb, struct net_device *netdev);

/* Under the rtnl lock. */
void wire_remove(struct net_device *netdev);

struct net_device *pf_netdev_create(struct pci_dev *pdev, struct eswitch *esw);
struct net_device *vf_netdev_create(struct pci_dev *pdev, struct vport *vport);
void netdev_destroy(struct net_device *netdev);

#endif
