// SPDX-License-Identifier: GPL-2.0
/*
 * Exposes registers of an 82576 that its driver does not report.
 *
 * The card counts the frames of each VF, but the kernel's igb has no
 * ndo_get_vf_stats, so rtnetlink shows zeros. This module adds that one
 * operation to the PF's netdev and answers it from the card's registers, as
 * the drivers of newer cards do. The driver itself is the kernel's: only its
 * table of operations is replaced by a copy with one more entry.
 *
 * insmod igb_registers.ko pf=0000:01:00.0
 * /sys/module/igb_registers/parameters/dtxswc: the transmit switch's control
 * register, which has a spoof check bit for each VF.
 */
#include <linux/etherdevice.h>
#include <linux/if_link.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>

/* 82576 datasheet, chapter 8; each VF's counters are 0x100 apart, 32 bits wide. */
#define DTXSWC 0x3500
#define PVFGPRC 0x10010
#define PVFGPTC 0x10014
#define PVFGORC 0x10018
#define PVFGOTC 0x10034
#define PVFMPRC 0x1003c

static char *pf;
module_param(pf, charp, 0400);
MODULE_PARM_DESC(pf, "PCI address of the PF");

static struct pci_dev *device;
static struct net_device *netdev;
static void __iomem *registers;
static const struct net_device_ops *drivers_operations;
static struct net_device_ops operations;

static u32 vf_register(int vf, u32 offset)
{
	return readl(registers + offset + vf * 0x100);
}

static int get_vf_stats(struct net_device *dev, int vf, struct ifla_vf_stats *stats)
{
	if (vf < 0 || vf >= pci_num_vf(device))
		return -EINVAL;
	stats->rx_packets = vf_register(vf, PVFGPRC);
	stats->tx_packets = vf_register(vf, PVFGPTC);
	stats->rx_bytes = vf_register(vf, PVFGORC);
	stats->tx_bytes = vf_register(vf, PVFGOTC);
	stats->multicast = vf_register(vf, PVFMPRC);
	return 0;
}

static int show_dtxswc(char *buffer, const struct kernel_param *unused)
{
	return sysfs_emit(buffer, "%08x\n", registers ? readl(registers + DTXSWC) : 0);
}

static const struct kernel_param_ops dtxswc_operations = { .get = show_dtxswc };
module_param_cb(dtxswc, &dtxswc_operations, NULL, 0400);

static struct pci_dev *find_pf(void)
{
	unsigned int domain, bus, slot, function;

	if (!pf || sscanf(pf, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, function));
}

/* igb's driver data is the netdev. */
static struct net_device *netdev_of(struct pci_dev *of)
{
	if (!of->dev.driver || strcmp(of->dev.driver->name, "igb"))
		return NULL;
	return pci_get_drvdata(of);
}

static void add_operation(void)
{
	drivers_operations = netdev->netdev_ops;
	operations = *drivers_operations;
	operations.ndo_get_vf_stats = get_vf_stats;
	rtnl_lock();
	netdev->netdev_ops = &operations;
	rtnl_unlock();
}

static int __init start(void)
{
	device = find_pf();
	if (!device)
		return -ENODEV;
	netdev = netdev_of(device);
	if (netdev)
		registers = pci_iomap(device, 0, 0);
	if (!registers) {
		pci_dev_put(device);
		return -ENODEV;
	}
	add_operation();
	return 0;
}

static void __exit stop(void)
{
	rtnl_lock();
	netdev->netdev_ops = drivers_operations;
	rtnl_unlock();
	pci_iounmap(device, registers);
	pci_dev_put(device);
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Shows the VFs' counters of an 82576 over rtnetlink");
