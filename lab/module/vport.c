// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing a vport's attributes. Limits and error codes are those of
 * mlx5's eswitch in legacy mode.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/string.h>

#include "eswitch.h"
#include "params.h"

/* Locks and returns the vport of an existing VF, or returns an error without the lock. */
static struct vport *vport_lock(struct eswitch *esw, int vf)
{
	mutex_lock(&esw->lock);
	if (vf >= 0 && vf < esw->enabled)
		return &esw->vports[vf];
	mutex_unlock(&esw->lock);
	return ERR_PTR(-EINVAL);
}

static void vport_unlock(struct vport *vport)
{
	mutex_unlock(&vport->eswitch->lock);
}

static struct vport *vport_begin_write(struct eswitch *esw, int vf,
				       const char *attribute)
{
	if (param_refuses(attribute) && !READ_ONCE(param_store_refused))
		return ERR_PTR(-EOPNOTSUPP);
	return vport_lock(esw, vf);
}

/*
 * mlx5 stores a MAC, VLAN or spoof check and then makes the vport's ACLs anew from all
 * three. A stored VLAN whose ACLs fail therefore fails the others, too; VLAN 0 needs none.
 */
static int vport_rules_error(struct vport *vport, const char *attribute)
{
	bool shared = !strcmp(attribute, "mac") || !strcmp(attribute, "vlan") ||
		      !strcmp(attribute, "spoofchk");

	if (!READ_ONCE(param_store_refused))
		return 0;
	if (shared && vport->vlan && param_refuses("vlan"))
		return -EOPNOTSUPP;
	return strcmp(attribute, "vlan") && param_refuses(attribute) ? -EOPNOTSUPP : 0;
}

static int vport_end_write(struct vport *vport, const char *attribute)
{
	int err = vport_rules_error(vport, attribute);

	if (!err)
		vport->writes++;
	vport_unlock(vport);
	return err;
}

/* As node_guid_gen_from_mac() of mlx5: the EUI-64 without the flipped bit. */
static u64 guid_from_mac(const u8 *mac)
{
	u64 address = ether_addr_to_u64(mac);

	return (address >> 24) << 40 | 0xfffeULL << 24 | (address & 0xffffff);
}

/* A netdev that already exists keeps its address: mlx5 reads it once, at probe. */
int vport_set_mac(struct eswitch *esw, int vf, const u8 *mac)
{
	unsigned int late_ms = READ_ONCE(param_mac_late_ms);
	struct vport *vport;

	if (is_multicast_ether_addr(mac))
		return -EINVAL;
	vport = vport_begin_write(esw, vf, "mac");
	if (IS_ERR(vport))
		return PTR_ERR(vport);

	/* A work item that already waits for the lock applies this MAC too. */
	ether_addr_copy(vport->late_mac, mac);
	if (late_ms) {
		mod_delayed_work(system_wq, &vport->late_mac_work,
				 msecs_to_jiffies(late_ms));
	} else {
		cancel_delayed_work(&vport->late_mac_work);
		ether_addr_copy(vport->mac, mac);
	}
	/* Setting the MAC programs a node GUID as well, so that RDMA CM works. */
	vport->node_guid = guid_from_mac(mac);
	return vport_end_write(vport, "mac");
}

int vport_set_vlan(struct eswitch *esw, int vf, u16 vlan, u8 qos, __be16 proto)
{
	struct vport *vport;

	if (proto != htons(ETH_P_8021Q) &&
	    !(READ_ONCE(param_vlan_8021ad) && proto == htons(ETH_P_8021AD)))
		return -EPROTONOSUPPORT;
	if (vlan >= VLAN_N_VID || qos > 7)
		return -EINVAL;
	vport = vport_begin_write(esw, vf, "vlan");
	if (IS_ERR(vport))
		return PTR_ERR(vport);
	vport->vlan = vlan;
	vport->qos = qos;
	vport->vlan_proto = proto;
	return vport_end_write(vport, "vlan");
}

int vport_set_rate(struct eswitch *esw, int vf, u32 min_rate, u32 max_rate)
{
	struct vport *vport = vport_begin_write(esw, vf, "rate");

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	vport->min_rate = min_rate;
	vport->max_rate = max_rate;
	return vport_end_write(vport, "rate");
}

int vport_set_spoofchk(struct eswitch *esw, int vf, bool on)
{
	struct vport *vport = vport_begin_write(esw, vf, "spoofchk");

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	vport->spoofchk = on;
	return vport_end_write(vport, "spoofchk");
}

int vport_set_trust(struct eswitch *esw, int vf, bool on)
{
	struct vport *vport = vport_begin_write(esw, vf, "trust");

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	vport->trusted = on;
	return vport_end_write(vport, "trust");
}

int vport_set_link_state(struct eswitch *esw, int vf, int state)
{
	struct vport *vport;

	if (state < IFLA_VF_LINK_STATE_AUTO || state >= __IFLA_VF_LINK_STATE_MAX)
		return -EINVAL;
	vport = vport_begin_write(esw, vf, "link_state");
	if (IS_ERR(vport))
		return PTR_ERR(vport);
	vport->link_state = state;
	vport_update_carrier(vport);
	return vport_end_write(vport, "link_state");
}

int vport_set_node_guid(struct eswitch *esw, int vf, u64 guid)
{
	struct vport *vport = vport_lock(esw, vf);

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	vport->node_guid = guid;
	return vport_end_write(vport, "node_guid");
}

int vport_set_port_guid(struct eswitch *esw, int vf, u64 guid)
{
	struct vport *vport = vport_lock(esw, vf);

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	vport->port_guid = guid;
	return vport_end_write(vport, "port_guid");
}

/*
 * mlx5 clears the whole reply first, so the VLAN protocol that rtnetlink filled
 * in (802.1Q) reads back as 0 there; ib_virt.c reports the link state alone.
 */
int vport_get_config(struct eswitch *esw, int vf, struct ifla_vf_info *ivi)
{
	struct vport *vport = vport_lock(esw, vf);

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	memset(ivi, 0, sizeof(*ivi));
	ivi->vf = vf;
	ivi->linkstate = vport->link_state;
	if (!esw->infiniband) {
		ether_addr_copy(ivi->mac, vport->mac);
		ivi->vlan = vport->vlan;
		ivi->qos = vport->qos;
		ivi->vlan_proto = READ_ONCE(param_vlan_8021ad) ? vport->vlan_proto : 0;
		ivi->spoofchk = vport->spoofchk;
		ivi->trusted = vport->trusted;
		ivi->min_tx_rate = vport->min_rate;
		ivi->max_tx_rate = vport->max_rate;
	}
	vport_unlock(vport);
	return 0;
}

/* Only GUIDs that were set read back, never the firmware's own. */
int vport_get_guids(struct eswitch *esw, int vf, u64 *node, u64 *port)
{
	struct vport *vport = vport_lock(esw, vf);

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	*node = vport->node_guid;
	*port = vport->port_guid;
	vport_unlock(vport);
	return 0;
}

int vport_get_stats(struct eswitch *esw, int vf, struct ifla_vf_stats *stats)
{
	struct vport *vport = vport_lock(esw, vf);

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	memset(stats, 0, sizeof(*stats));
	stats->tx_packets = atomic64_read(&vport->tx_packets);
	stats->tx_bytes = atomic64_read(&vport->tx_bytes);
	stats->rx_packets = atomic64_read(&vport->rx_packets);
	stats->rx_bytes = atomic64_read(&vport->rx_bytes);
	vport_unlock(vport);
	return 0;
}

/* For a VF in a guest, whose traffic nothing else counts on the host; see "vport_traffic". */
int vport_set_traffic(struct eswitch *esw, int vf, const struct vport_traffic *sent,
		      const struct vport_traffic *received)
{
	struct vport *vport = vport_lock(esw, vf);

	if (IS_ERR(vport))
		return PTR_ERR(vport);
	atomic64_set(&vport->tx_packets, sent->packets);
	atomic64_set(&vport->tx_bytes, sent->bytes);
	atomic64_set(&vport->rx_packets, received->packets);
	atomic64_set(&vport->rx_bytes, received->bytes);
	vport_unlock(vport);
	return 0;
}

const char *vport_link_state_name(int state)
{
	switch (state) {
	case IFLA_VF_LINK_STATE_ENABLE:
		return "enable";
	case IFLA_VF_LINK_STATE_DISABLE:
		return "disable";
	default:
		return "auto";
	}
}
