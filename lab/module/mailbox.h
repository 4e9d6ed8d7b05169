/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the host would have told a VF through the card's firmware.
 *
 * A real VF learns its MAC address and GUIDs from the vport context that the
 * PF wrote into the card. The emulated function has no such memory, so the lab
 * hands the same values to the guest in the first page of a shared memory
 * device (QEMU's ivshmem-plain, BAR 2), and the guest hands back in the second
 * what a card would have counted. This header is the whole contract; it is used
 * by the kernel module and by the mailbox_*.c programs. All integers are little
 * endian, GUIDs are bytes in the order in which they are written.
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
	__u8 mac[6];		/* all zero: the guest makes one up */
	__u8 flavour;		/* enum mailbox_flavour */
	__u8 link_down;		/* 1: the host disabled the vport */
	__u8 node_guid[8];
	__u8 port_guid[8];
	__le16 vlan;		/* for tests only: a real guest cannot see it */
	__u8 reserved[22];
};

/*
 * The page. `sequence` is odd while a writer is at work; a reader copies the
 * page and starts over if the sequence was odd or has changed meanwhile.
 */
struct mailbox {
	__le64 magic;
	__le32 version;
	__le32 count;		/* entries in use */
	__le32 sequence;
	__u8 reserved[44];
	struct mailbox_entry entries[MAILBOX_MAX_ENTRIES];
};

/* What one VF sent, under the PCI address that it has in the guest. 64 bytes. */
struct mailbox_traffic_entry {
	char address[16];
	__le64 packets;
	__le64 bytes;
	__u8 reserved[32];
};

/*
 * The second page, the only one that the guest writes: what a card would have
 * counted. There is no card and no wire, and SoftRoCE loops inside the guest, so
 * nothing on the host could see its traffic: the guest's init counts it
 * (mailbox_count.c) and the host mirrors it into the PF's vports
 * (mailbox_traffic.c, `vport_traffic`). A declared stand-in: it shows what
 * vfpass makes of counters, not that counters cannot be deceived.
 *
 * Counts only grow while the guest runs. `sequence` is used as above.
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
