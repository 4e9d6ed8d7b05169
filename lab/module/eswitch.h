/* SPDX-License-Identifier: GPL-2.0 */
/* The eswitch of a card: one vport per VF with the attributes that the PF has set. */
#ifndef STANDIN_ESWITCH_H
#define STANDIN_ESWITCH_H

#include <linux/atomic.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>

struct eswitch;

struct vport {
	struct eswitch *eswitch;

	u8 mac[ETH_ALEN];
	u16 vlan;
	u8 qos;
	__be16 vlan_proto;
	bool spoofchk;
	bool trusted;
	int link_state;		/* IFLA_VF_LINK_STATE_* */
	u32 min_rate;
	u32 max_rate;
	u64 node_guid;
	u64 port_guid;
	unsigned int writes;	/* attributes accepted since creation */

	struct delayed_work late_mac_work;
	u8 late_mac[ETH_ALEN];

	struct net_device *netdev;	/* the VF's netdev while it is up here */
	atomic64_t tx_packets;
	atomic64_t tx_bytes;
	atomic64_t rx_packets;		/* set through "vport_traffic" */
	atomic64_t rx_bytes;
};

struct vport_traffic {
	u64 packets;
	u64 bytes;
};

struct eswitch {
	struct mutex lock;	/* protects everything below except the counters */
	bool infiniband;
	bool uplink_up;
	unsigned int total;
	unsigned int enabled;
	struct vport vports[];
};

struct eswitch *eswitch_alloc(unsigned int total, bool infiniband);
void eswitch_free(struct eswitch *esw);
void eswitch_enable(struct eswitch *esw, unsigned int num_vfs);
void eswitch_disable(struct eswitch *esw);
void eswitch_set_uplink(struct eswitch *esw, bool up);

int vport_set_mac(struct eswitch *esw, int vf, const u8 *mac);
int vport_set_vlan(struct eswitch *esw, int vf, u16 vlan, u8 qos, __be16 proto);
int vport_set_rate(struct eswitch *esw, int vf, u32 min_rate, u32 max_rate);
int vport_set_spoofchk(struct eswitch *esw, int vf, bool on);
int vport_set_trust(struct eswitch *esw, int vf, bool on);
int vport_set_link_state(struct eswitch *esw, int vf, int state);
int vport_set_node_guid(struct eswitch *esw, int vf, u64 guid);
int vport_set_port_guid(struct eswitch *esw, int vf, u64 guid);

int vport_get_config(struct eswitch *esw, int vf, struct ifla_vf_info *ivi);
int vport_get_guids(struct eswitch *esw, int vf, u64 *node, u64 *port);
int vport_get_stats(struct eswitch *esw, int vf, struct ifla_vf_stats *stats);
int vport_set_traffic(struct eswitch *esw, int vf, const struct vport_traffic *sent,
		      const struct vport_traffic *received);

void vport_update_carrier(struct vport *vport);
void vport_netdev_up(struct vport *vport, struct net_device *netdev);
void vport_netdev_down(struct vport *vport, struct net_device *netdev);
void vport_count_tx(struct vport *vport, unsigned int length);

const char *vport_link_state_name(int state);

#endif
