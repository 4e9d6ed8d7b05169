// SPDX-License-Identifier: GPL-2.0
/*
 * Lifetime of the vports. As in mlx5, they exist as long as the PF is bound and
 * are accessible while the PF has VFs, whether or not the VF has a driver.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>

#include "eswitch.h"

static void vport_apply_late_mac(struct work_struct *work)
{
	struct vport *vport = container_of(work, struct vport, late_mac_work.work);

	mutex_lock(&vport->eswitch->lock);
	ether_addr_copy(vport->mac, vport->late_mac);
	mutex_unlock(&vport->eswitch->lock);
}

/*
 * mlx5 clears an Ethernet vport when the VFs are destroyed
 * (mlx5_eswitch_clear_vf_vports_info), but keeps the GUIDs and the policy of an
 * InfiniBand vport for the next VF with that number (sriov_restore_guids).
 */
static void vport_clear(struct vport *vport)
{
	eth_zero_addr(vport->mac);
	vport->vlan = 0;
	vport->qos = 0;
	vport->vlan_proto = htons(ETH_P_8021Q);
	vport->spoofchk = false;
	vport->trusted = false;
	vport->min_rate = 0;
	vport->max_rate = 0;
	vport->writes = 0;
	if (!vport->eswitch->infiniband) {
		vport->node_guid = 0;
		vport->link_state = IFLA_VF_LINK_STATE_AUTO;
	}
	atomic64_set(&vport->tx_packets, 0);
	atomic64_set(&vport->tx_bytes, 0);
}

struct eswitch *eswitch_alloc(unsigned int total, bool infiniband)
{
	struct eswitch *esw;
	unsigned int i;

	esw = kvzalloc(struct_size(esw, vports, total), GFP_KERNEL);
	if (!esw)
		return NULL;

	mutex_init(&esw->lock);
	esw->infiniband = infiniband;
	esw->total = total;
	for (i = 0; i < total; i++) {
		struct vport *vport = &esw->vports[i];

		vport->eswitch = esw;
		INIT_DELAYED_WORK(&vport->late_mac_work, vport_apply_late_mac);
		/* An InfiniBand vport is down until its policy is set. */
		vport->link_state = IFLA_VF_LINK_STATE_DISABLE;
		vport_clear(vport);
	}
	return esw;
}

void eswitch_free(struct eswitch *esw)
{
	eswitch_disable(esw);
	mutex_destroy(&esw->lock);
	kvfree(esw);
}

void eswitch_enable(struct eswitch *esw, unsigned int num_vfs)
{
	mutex_lock(&esw->lock);
	esw->enabled = min(num_vfs, esw->total);
	mutex_unlock(&esw->lock);
}

/* Called after the VFs are gone: no netdev refers to a vport any more. */
void eswitch_disable(struct eswitch *esw)
{
	unsigned int i;

	mutex_lock(&esw->lock);
	esw->enabled = 0;
	mutex_unlock(&esw->lock);

	/* Nothing can queue this work now. It takes the lock, so wait without it. */
	for (i = 0; i < esw->total; i++)
		cancel_delayed_work_sync(&esw->vports[i].late_mac_work);

	mutex_lock(&esw->lock);
	for (i = 0; i < esw->total; i++)
		vport_clear(&esw->vports[i]);
	mutex_unlock(&esw->lock);
}

void vport_update_carrier(struct vport *vport)
{
	bool up = vport->link_state == IFLA_VF_LINK_STATE_ENABLE ||
		  (vport->link_state == IFLA_VF_LINK_STATE_AUTO &&
		   vport->eswitch->uplink_up);

	lockdep_assert_held(&vport->eswitch->lock);
	if (!vport->netdev)
		return;
	if (up)
		netif_carrier_on(vport->netdev);
	else
		netif_carrier_off(vport->netdev);
}

/* The link state "auto" follows the PF's port. */
void eswitch_set_uplink(struct eswitch *esw, bool up)
{
	unsigned int i;

	mutex_lock(&esw->lock);
	esw->uplink_up = up;
	for (i = 0; i < esw->total; i++)
		vport_update_carrier(&esw->vports[i]);
	mutex_unlock(&esw->lock);
}

void vport_netdev_up(struct vport *vport, struct net_device *netdev)
{
	mutex_lock(&vport->eswitch->lock);
	vport->netdev = netdev;
	vport_update_carrier(vport);
	mutex_unlock(&vport->eswitch->lock);
}

void vport_netdev_down(struct vport *vport, struct net_device *netdev)
{
	mutex_lock(&vport->eswitch->lock);
	vport->netdev = NULL;
	netif_carrier_off(netdev);
	mutex_unlock(&vport->eswitch->lock);
}

/* Runs in the transmit path: only updates counters, takes no lock. */
void vport_count_tx(struct vport *vport, unsigned int length)
{
	atomic64_inc(&vport->tx_packets);
	atomic64_add(length, &vport->tx_bytes);
}
