/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a VF would learn from the card's firmware.
 *
 * A real VF learns its MAC address and GUIDs from the vport context that the
 * PF wrote into the card. The emulated function has no such memory, so the lab
 * passes these values to the guest in the first page of a shared memory device
 * (QEMU's ivshmem-plain, BAR 2). In the second page the guest returns what a
 * card would have counted. This header is the whole interface; the kernel
 * module and the mailbox_*.c programs use it. All integers are little endian;
 * GUIDs are bytes in the order in which they are printed.
 */
#ifndef VFPASS_LAB_MAILBOX_H
#define VFPASS_LAB_MAILBOX_H

#include <linux/types.h>

#define MAILBOX_PCI_VENDOR	0x1af4
#define MAILBOX_PCI_DEVICE	0x1110
#define MAILBOX_BAR		2

#define MAILBOX_MAGIC		0x584f424c49414d56ULL	/* "VMAILBOX" */
#define MAILBOX_VERSION		1
#define MAILBOX_FILE_SIZE	(1024 * 1024)
#define MAILBOX_MAX_ENTRIES	63

#define MAILBOX_TRAFFIC_OFFSET	4096
#define MAILBOX_TRAFFIC_MAGIC	0x4c49414d46465254ULL	/* "TRFFMAIL" */

enum mailbox_flavour {
	MAILBOX_ETHERNET = 0,
	MAILBOX_INFINIBAND = 1,
};

/* One VF, under the PCI address that it has in the guest. 64 bytes. */
struct mailbox_entry {
	char address[16];	/* "0000:02:00.0", padded with NUL */
	__u8 mac[6];		/* all zero: the guest draws a random one */
	__u8 flavour;		/* enum mailbox_flavour */
	__u8 link_down;		/* 1: the host disabled the vport */
	__u8 node_guid[8];
	__u8 port_guid[8];
	__le16 vlan;		/* for tests only: not visible in a real guest */
	__u8 reserved[22];
};

/*
 * The page. `sequence` is odd while a writer updates it. A reader copies the
 * page and retries if the sequence was odd or has changed meanwhile.
 */
struct mailbox {
	__le64 magic;
	__le32 version;
	__le32 count;		/* entries in use */
	__le32 sequence;
	__u8 reserved[44];
	struct mailbox_entry entries[MAILBOX_MAX_ENTRIES];
};

/* What one VF has sent, under the PCI address that it has in the guest. 64 bytes. */
struct mailbox_traffic_entry {
	char address[16];
	__le64 packets;
	__le64 bytes;
	__u8 reserved[32];
};

/*
 * The second page, the only one that the guest writes: what a card would have
 * counted. There is no card and no wire, and SoftRoCE loops inside the guest, so
 * its traffic never reaches the host. The guest's init counts it
 * (mailbox_count.c) and the host mirrors it into the PF's vports
 * (mailbox_traffic.c, `vport_traffic`). This tests how vfpass evaluates
 * counters, not whether a guest could forge them.
 *
 * Counts only increase while the guest runs. `sequence` is used as above.
 */
struct mailbox_traffic {
	__le64 magic;
	__le32 version;
	__le32 count;		/* entries in use */
	__le32 sequence;
	__u8 reserved[44];
	struct mailbox_traffic_entry entries[MAILBOX_MAX_ENTRIES];
};

_Static_assert(sizeof(struct mailbox_entry) == 64, "mailbox entry layout");
_Static_assert(sizeof(struct mailbox) == 4096, "mailbox layout");
_Static_assert(sizeof(struct mailbox_traffic_entry) == 64, "traffic entry layout");
_Static_assert(sizeof(struct mailbox_traffic) == 4096, "traffic layout");

#endif
