/* SPDX-License-Identifier: GPL-2.0 */
/* The two kinds of PCI function, and the files that show their state. */
#ifndef STANDIN_FUNCTION_H
#define STANDIN_FUNCTION_H

#include <linux/pci.h>

#include "eswitch.h"

struct ofed_files;

struct pf {
	struct eswitch *eswitch;
	struct net_device *netdev;
	struct ofed_files *ofed;
};

struct vf {
	struct pci_dev *pdev;
	struct vport *vport;
	struct eswitch *guest_eswitch;	/* in a guest: holds the only vport */
	struct net_device *netdev;
	struct delayed_work netdev_work;
};

extern struct pci_driver standin_driver;

int pf_probe(struct pci_dev *pdev);
void pf_remove(struct pci_dev *pdev);
int pf_sriov_configure(struct pci_dev *pdev, int num_vfs);

int vf_probe(struct pci_dev *pdev);
void vf_remove(struct pci_dev *pdev);

/* sysfs: "vports" and "vport_traffic" of a PF, "vport" and "wire" of a VF. */
extern const struct attribute_group pf_show_group;
extern const struct attribute_group vf_show_group;
extern struct device_attribute dev_attr_wire;

/* sriov/N/{node,port,policy} of a PF; NULL without these files. */
struct ofed_files *ofed_create(struct pci_dev *pdev, struct eswitch *esw, int num_vfs);
void ofed_destroy(struct ofed_files *ofed);

/* In a guest: fill the vport from the host's mailbox. */
struct eswitch *mailbox_eswitch(struct pci_dev *pdev);

#endif
