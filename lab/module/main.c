// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for mlx5_core on the SR-IOV functions of QEMU's NVMe controller.
 *
 * A function with the SR-IOV capability is a PF. All others are VFs: if
 * is_virtfn is set, this is the host that created them, otherwise a guest that
 * was given one (a VF's config space has no SR-IOV capability, PCIe 9.3.7).
 */
#include <linux/module.h>

#include "function.h"

static int standin_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	return pdev->is_physfn ? pf_probe(pdev) : vf_probe(pdev);
}

static void standin_remove(struct pci_dev *pdev)
{
	if (pdev->is_physfn)
		pf_remove(pdev);
	else
		vf_remove(pdev);
}

/* A VF of QEMU's controller has the PF's IDs, so one entry covers both. */
static const struct pci_device_id standin_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT, 0x0010) },
	{ }
};
MODULE_DEVICE_TABLE(pci, standin_ids);

struct pci_driver standin_driver = {
	.name = KBUILD_MODNAME,
	.id_table = standin_ids,
	.probe = standin_probe,
	.remove = standin_remove,
	.sriov_configure = pf_sriov_configure,
};
module_pci_driver(standin_driver);

MODULE_DESCRIPTION("vfpass lab: a stand-in for the ConnectX driver");
MODULE_LICENSE("GPL");
