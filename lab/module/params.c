// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters: which card to emulate and how it misbehaves. All of them
 * can be written at run time below /sys/module/mlx5_core/parameters.
 */
#include <linux/module.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "params.h"

#define LIST_SIZE	256

static const char *const flavours[] = { "ethernet", "infiniband" };
static int flavour;

static int set_flavour(const char *value, const struct kernel_param *param)
{
	int index = sysfs_match_string(flavours, value);

	if (index < 0)
		return index;
	flavour = index;
	return 0;
}

static int get_flavour(char *buf, const struct kernel_param *param)
{
	return sysfs_emit(buf, "%s\n", flavours[flavour]);
}

static const struct kernel_param_ops flavour_ops = {
	.set = set_flavour,
	.get = get_flavour,
};
module_param_cb(flavour, &flavour_ops, NULL, 0644);
MODULE_PARM_DESC(flavour,
		 "link layer of functions probed from now on: ethernet or infiniband");

static char infiniband_pfs[LIST_SIZE];
module_param_string(infiniband_pfs, infiniband_pfs, sizeof(infiniband_pfs), 0644);
MODULE_PARM_DESC(infiniband_pfs,
		 "PCI addresses of PFs that are InfiniBand regardless of flavour, comma separated");

bool param_ofed_files;
module_param_named(ofed_files, param_ofed_files, bool, 0644);
MODULE_PARM_DESC(ofed_files,
		 "create MLNX_OFED's sriov/N/{node,port,policy} of InfiniBand PFs with their VFs");

bool param_vlan_8021ad = true;
module_param_named(vlan_8021ad, param_vlan_8021ad, bool, 0644);
MODULE_PARM_DESC(vlan_8021ad,
		 "accept 802.1ad VF VLANs as MLNX_OFED does; N: EPROTONOSUPPORT, and the protocol reads back as 0, as in Linux 6.1");

unsigned int param_host_id;
module_param_named(host_id, param_host_id, uint, 0644);
MODULE_PARM_DESC(host_id,
		 "a byte (0 to 255) of the PFs' MAC addresses, so that those of two lab hosts differ");

static char firmware_version[32] = "28.39.1002 (LAB0000000001)";
module_param_string(firmware_version, firmware_version, sizeof(firmware_version), 0644);
MODULE_PARM_DESC(firmware_version, "firmware version that ethtool reports");

unsigned int param_probe_delay_ms;
module_param_named(probe_delay_ms, param_probe_delay_ms, uint, 0644);
MODULE_PARM_DESC(probe_delay_ms, "time that probing a VF takes; a signal interrupts it with EINTR");

unsigned int param_netdev_delay_ms;
module_param_named(netdev_delay_ms, param_netdev_delay_ms, uint, 0644);
MODULE_PARM_DESC(netdev_delay_ms, "delay between a VF's probe and its netdev");

unsigned int param_configure_delay_ms;
module_param_named(configure_delay_ms, param_configure_delay_ms, uint, 0644);
MODULE_PARM_DESC(configure_delay_ms, "minimum time that a write to sriov_numvfs takes");

unsigned int param_mac_late_ms;
module_param_named(mac_late_ms, param_mac_late_ms, uint, 0644);
MODULE_PARM_DESC(mac_late_ms, "delay until a VF's MAC address is applied and reads back");

bool param_numvfs_busy;
module_param_named(numvfs_busy, param_numvfs_busy, bool, 0644);
MODULE_PARM_DESC(numvfs_busy, "a write to sriov_numvfs, even of 0, fails with EBUSY");

unsigned int param_numvfs_limit;
module_param_named(numvfs_limit, param_numvfs_limit, uint, 0644);
MODULE_PARM_DESC(numvfs_limit, "create at most this many VFs and still report success; 0: no limit");

static char refuse_attribute[LIST_SIZE];
module_param_string(refuse_attribute, refuse_attribute, sizeof(refuse_attribute), 0644);
MODULE_PARM_DESC(refuse_attribute,
		 "VF attributes that fail with EOPNOTSUPP, comma separated: mac,vlan,rate,spoofchk,trust,link_state,node_guid,port_guid");

bool param_store_refused;
module_param_named(store_refused, param_store_refused, bool, 0644);
MODULE_PARM_DESC(store_refused,
		 "values of refused attributes are stored and read back, as mlx5 does when it cannot make a VF's ACLs; VLAN 0 is accepted");

static bool unbind_hang;
module_param(unbind_hang, bool, 0644);
MODULE_PARM_DESC(unbind_hang, "unbinding a VF blocks, even under SIGKILL, until this is N again");

static char unbind_hang_device[16];
module_param_string(unbind_hang_device, unbind_hang_device, sizeof(unbind_hang_device), 0644);
MODULE_PARM_DESC(unbind_hang_device, "PCI address of the only VF that unbind_hang affects; empty: all");

/*
 * A string parameter contains what was written to sysfs, including the newline
 * of echo, and changes only under this lock.
 */
static void copy_param(char *copy, const char *param, size_t size)
{
	kernel_param_lock(THIS_MODULE);
	strscpy(copy, param, size);
	kernel_param_unlock(THIS_MODULE);
}

static bool list_contains(const char *list, const char *word)
{
	char copy[LIST_SIZE];
	char *rest = copy;
	char *item;

	copy_param(copy, list, sizeof(copy));
	while ((item = strsep(&rest, ",")))
		if (!strcmp(strim(item), word))
			return true;
	return false;
}

bool param_is_infiniband(struct pci_dev *pdev)
{
	return READ_ONCE(flavour) || list_contains(infiniband_pfs, pci_name(pdev));
}

bool param_refuses(const char *attribute)
{
	return list_contains(refuse_attribute, attribute);
}

bool param_unbind_hangs(struct pci_dev *pdev)
{
	if (!READ_ONCE(unbind_hang))
		return false;
	return list_contains(unbind_hang_device, "") ||
	       list_contains(unbind_hang_device, pci_name(pdev));
}

void param_firmware_version(char *text, size_t size)
{
	char copy[sizeof(firmware_version)];

	copy_param(copy, firmware_version, sizeof(copy));
	strscpy(text, strim(copy), size);
}
