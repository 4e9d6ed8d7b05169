/* SPDX-License-Identifier: GPL-2.0 */
/* The module's parameters; params.c describes them. */
#ifndef STANDIN_PARAMS_H
#define STANDIN_PARAMS_H

#include <linux/pci.h>

extern bool param_ofed_files;
extern bool param_vlan_8021ad;
extern unsigned int param_host_id;

extern unsigned int param_probe_delay_ms;
extern unsigned int param_netdev_delay_ms;
extern unsigned int param_configure_delay_ms;
extern unsigned int param_mac_late_ms;
extern bool param_numvfs_busy;
extern unsigned int param_numvfs_limit;
extern bool param_store_refused;

bool param_is_infiniband(struct pci_dev *pdev);
bool param_refuses(const char *attribute);
bool param_unbind_hangs(struct pci_dev *pdev);
void param_firmware_version(char *text, size_t size);

#endif
