// SPDX-License-Identifier: GPL-2.0
/* In a guest: read what the host wrote into our vport. See mailbox.h. */
#include <linux/etherdevice.h>
#include <linux/io.h>
#include <linux/slab.h>

#include "function.h"
#include "mailbox.h"
#include "params.h"
#include "unaligned.h"

#define READ_ATTEMPTS	100

static int mailbox_copy(struct mailbox *copy, const void __iomem *page)
{
	const struct mailbox __iomem *mailbox = page;
	u32 before, after;
	int attempt;

	for (attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
		before = ioread32(&mailbox->sequence);
		rmb();	/* read the page between the two reads of sequence */
		memcpy_fromio(copy, page, sizeof(*copy));
		rmb();	/* the same, for the second read */
		after = ioread32(&mailbox->sequence);
		if (before == after && !(before & 1))
			return 0;
		cpu_relax();
	}
	return -EAGAIN;
}

static int mailbox_read_device(struct mailbox *copy, struct pci_dev *device)
{
	void __iomem *page;
	int err;

	err = pci_enable_device_mem(device);
	if (err)
		return err;
	page = pci_iomap(device, MAILBOX_BAR, sizeof(*copy));
	err = page ? mailbox_copy(copy, page) : -ENOMEM;
	if (page)
		pci_iounmap(device, page);
	pci_disable_device(device);
	return err;
}

/* There may be several shared memory devices; the magic identifies ours. */
static int mailbox_read(struct mailbox *copy, struct pci_dev *vf)
{
	struct pci_dev *device = NULL;
	bool other = false;

	while ((device = pci_get_device(MAILBOX_PCI_VENDOR, MAILBOX_PCI_DEVICE, device))) {
		if (!mailbox_read_device(copy, device) &&
		    le64_to_cpu(copy->magic) == MAILBOX_MAGIC) {
			pci_dev_put(device);
			break;
		}
		other = true;
	}
	if (!device) {
		if (other)
			pci_warn(vf, "mailbox: wrong magic\n");
		return -ENOENT;
	}
	if (le32_to_cpu(copy->version) != MAILBOX_VERSION) {
		pci_warn(vf, "mailbox: unknown version %u\n",
			 le32_to_cpu(copy->version));
		return -EINVAL;
	}
	return 0;
}

static const struct mailbox_entry *mailbox_find(const struct mailbox *mailbox,
						struct pci_dev *vf)
{
	u32 count = min_t(u32, le32_to_cpu(mailbox->count), MAILBOX_MAX_ENTRIES);
	const struct mailbox_entry *entry;

	for (entry = mailbox->entries; entry < mailbox->entries + count; entry++)
		if (!strncmp(entry->address, pci_name(vf), sizeof(entry->address)))
			return entry;
	return NULL;
}

static void vport_fill(struct vport *vport, const struct mailbox_entry *entry)
{
	ether_addr_copy(vport->mac, entry->mac);
	vport->node_guid = get_unaligned_be64(entry->node_guid);
	vport->port_guid = get_unaligned_be64(entry->port_guid);
	vport->vlan = le16_to_cpu(entry->vlan);
	vport->link_state = entry->link_down ? IFLA_VF_LINK_STATE_DISABLE :
					       IFLA_VF_LINK_STATE_AUTO;
}

/* A vport without an entry is empty, so its netdev gets a random MAC. */
struct eswitch *mailbox_eswitch(struct pci_dev *pdev)
{
	const struct mailbox_entry *entry = NULL;
	struct mailbox *mailbox;
	struct eswitch *esw;
	bool infiniband;

	mailbox = kmalloc(sizeof(*mailbox), GFP_KERNEL);
	if (!mailbox)
		return NULL;
	if (!mailbox_read(mailbox, pdev))
		entry = mailbox_find(mailbox, pdev);
	if (!entry)
		dev_warn_once(&pdev->dev, "mailbox: no entry for this VF\n");

	infiniband = entry ? entry->flavour == MAILBOX_INFINIBAND :
			     param_is_infiniband(pdev);
	esw = eswitch_alloc(1, infiniband);
	if (esw) {
		eswitch_enable(esw, 1);
		eswitch_set_uplink(esw, true);
		if (entry)
			vport_fill(&esw->vports[0], entry);
	}
	kfree(mailbox);
	return esw;
}
