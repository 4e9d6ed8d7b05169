// SPDX-License-Identifier: GPL-2.0
/* The VF: probe and remove, on the host that created it or in a guest. */
#include <linux/delay.h>
#include <linux/slab.h>

#include "function.h"
#include "netdev.h"
#include "params.h"

#define UNBIND_POLL_MS	100

static int vf_create_netdev(struct vf *vf)
{
	struct net_device *netdev = vf_netdev_create(vf->pdev, vf->vport);

	if (IS_ERR(netdev)) {
		pci_err(vf->pdev, "no netdev: %ld\n", PTR_ERR(netdev));
		return PTR_ERR(netdev);
	}
	vf->netdev = netdev;
	return 0;
}

static void vf_netdev_work(struct work_struct *work)
{
	vf_create_netdev(container_of(work, struct vf, netdev_work.work));
}

/*
 * If this driver is bound to the PF, the PF's driver data is ours. It stays valid
 * while the VF is bound: the PF's remove() waits in pci_disable_sriov() for ours.
 */
static int vf_find_vport(struct vf *vf)
{
	struct pci_dev *pdev = vf->pdev;
	struct pf *pf;

	if (!pdev->is_virtfn) {
		vf->guest_eswitch = mailbox_eswitch(pdev);
		if (!vf->guest_eswitch)
			return -ENOMEM;
		vf->vport = &vf->guest_eswitch->vports[0];
		return 0;
	}

	pf = pci_iov_get_pf_drvdata(pdev, &standin_driver);
	if (IS_ERR(pf))
		return PTR_ERR(pf);
	vf->vport = &pf->eswitch->vports[pci_iov_vf_id(pdev)];
	return 0;
}

static void vf_release_vport(struct vf *vf)
{
	if (vf->guest_eswitch)
		eswitch_free(vf->guest_eswitch);
}

/* The function is not enabled, because its registers are not used. */
int vf_probe(struct pci_dev *pdev)
{
	unsigned int netdev_delay_ms = READ_ONCE(param_netdev_delay_ms);
	struct vf *vf;
	int err;

	if (msleep_interruptible(READ_ONCE(param_probe_delay_ms)))
		return -EINTR;
	vf = devm_kzalloc(&pdev->dev, sizeof(*vf), GFP_KERNEL);
	if (!vf)
		return -ENOMEM;
	vf->pdev = pdev;
	INIT_DELAYED_WORK(&vf->netdev_work, vf_netdev_work);
	err = vf_find_vport(vf);
	if (err)
		return err;
	pci_set_drvdata(pdev, vf);

	err = device_add_group(&pdev->dev, &vf_show_group);
	if (err)
		goto release_vport;
	if (netdev_delay_ms) {
		schedule_delayed_work(&vf->netdev_work, msecs_to_jiffies(netdev_delay_ms));
		return 0;
	}
	err = vf_create_netdev(vf);
	if (err)
		goto remove_group;
	return 0;

remove_group:
	device_remove_group(&pdev->dev, &vf_show_group);
release_vport:
	vf_release_vport(vf);
	return err;
}

/*
 * A driver that waits for its firmware or its users sleeps uninterruptibly, so
 * the task that wrote to "unbind" cannot be killed. msleep() sleeps the same way.
 */
void vf_remove(struct pci_dev *pdev)
{
	struct vf *vf = pci_get_drvdata(pdev);

	while (param_unbind_hangs(pdev))
		msleep(UNBIND_POLL_MS);

	/* The work takes the rtnl lock, which is not held here. */
	cancel_delayed_work_sync(&vf->netdev_work);
	/* Remove the files first: "wire" accesses the netdev. */
	device_remove_group(&pdev->dev, &vf_show_group);
	if (vf->netdev)
		netdev_destroy(vf->netdev);
	vf_release_vport(vf);
}
