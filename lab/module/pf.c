// SPDX-License-Identifier: GPL-2.0
/* The PF: probe, remove, and the number of its VFs. */
#include <linux/delay.h>
#include <linux/slab.h>

#include "function.h"
#include "netdev.h"
#include "params.h"

/*
 * pci_disable_sriov() returns when the last VF is gone, which a driver that
 * holds one (vfio-pci with an open device) can delay indefinitely. The vports
 * stay accessible meanwhile, so netlink keeps working.
 */
static void pf_disable_vfs(struct pci_dev *pdev, struct pf *pf)
{
	pci_disable_sriov(pdev);
	ofed_destroy(pf->ofed);
	pf->ofed = NULL;
	eswitch_disable(pf->eswitch);
}

/* The vports come first: VFs are probed inside pci_enable_sriov(). */
static int pf_enable_vfs(struct pci_dev *pdev, struct pf *pf, int num_vfs)
{
	int err;

	eswitch_enable(pf->eswitch, num_vfs);
	if (READ_ONCE(param_ofed_files) && pf->eswitch->infiniband) {
		pf->ofed = ofed_create(pdev, pf->eswitch, num_vfs);
		if (!pf->ofed)
			pci_warn(pdev, "no OFED files: out of memory\n");
	}
	err = pci_enable_sriov(pdev, num_vfs);
	if (err) {
		pci_warn(pdev, "pci_enable_sriov failed: %d\n", err);
		pf_disable_vfs(pdev, pf);
	}
	return err;
}

/*
 * Called by sriov_numvfs_store() with the device locked. The PCI core has
 * already refused a change from one nonzero number to another, and warns if
 * fewer VFs are created than were requested.
 */
int pf_sriov_configure(struct pci_dev *pdev, int num_vfs)
{
	unsigned int limit = READ_ONCE(param_numvfs_limit);
	struct pf *pf = pci_get_drvdata(pdev);
	int err;

	msleep(READ_ONCE(param_configure_delay_ms));
	if (READ_ONCE(param_numvfs_busy))
		return -EBUSY;
	if (!num_vfs) {
		pf_disable_vfs(pdev, pf);
		return 0;
	}
	if (limit && num_vfs > limit)
		num_vfs = limit;
	err = pf_enable_vfs(pdev, pf, num_vfs);
	return err ? err : num_vfs;
}

int pf_probe(struct pci_dev *pdev)
{
	struct pf *pf;
	int err;

	err = pcim_enable_device(pdev);
	if (err)
		return err;
	pf = devm_kzalloc(&pdev->dev, sizeof(*pf), GFP_KERNEL);
	if (!pf)
		return -ENOMEM;
	pf->eswitch = eswitch_alloc(pci_sriov_get_totalvfs(pdev),
				    param_is_infiniband(pdev));
	if (!pf->eswitch)
		return -ENOMEM;
	pci_set_drvdata(pdev, pf);

	pf->netdev = pf_netdev_create(pdev, pf->eswitch);
	if (IS_ERR(pf->netdev)) {
		err = PTR_ERR(pf->netdev);
		goto free_eswitch;
	}
	err = device_add_group(&pdev->dev, &pf_show_group);
	if (err)
		goto destroy_netdev;
	return 0;

destroy_netdev:
	netdev_destroy(pf->netdev);
free_eswitch:
	eswitch_free(pf->eswitch);
	return err;
}

/* As mlx5's remove_one(): the VFs go first, even if they are in use. */
void pf_remove(struct pci_dev *pdev)
{
	struct pf *pf = pci_get_drvdata(pdev);

	pf_disable_vfs(pdev, pf);
	device_remove_group(&pdev->dev, &pf_show_group);
	netdev_destroy(pf->netdev);
	eswitch_free(pf->eswitch);
}
