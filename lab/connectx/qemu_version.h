/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QEMU's headers, and the differences between the interfaces of QEMU 7.2 (Debian 12) and 10.0 (Debian 13). */
#ifndef CONNECTX_QEMU_VERSION_H
#define CONNECTX_QEMU_VERSION_H

#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_sriov.h"
#include "hw/qdev-properties.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qemu/units.h"

#if CONNECTX_QEMU >= 1000
#include "hw/pci/pci_device.h"
#include "hw/qdev-core.h"

/* QEMU 10.0 realizes all VFs with the PF and only enables them later; this may fail. */
static inline bool version_sriov_init(PCIDevice *device, uint16_t at, const char *type, uint16_t id, uint16_t vfs,
                                      uint16_t first, Error **errp)
{
    return pcie_sriov_pf_init(device, at, type, id, vfs, vfs, first, 1, errp);
}

/* The type of a VF's BAR is the one that the PF's SR-IOV capability has. */
static inline void version_register_vf_bar(PCIDevice *device, uint8_t type, MemoryRegion *bar)
{
    pci_register_bar(device, 0, type, bar);
}

/* QEMU's own write to the configuration space does it. */
static inline void version_sriov_config_write(PCIDevice *device, uint32_t address, uint32_t value, int length)
{
    (void)device;
    (void)address;
    (void)value;
    (void)length;
}

/* QEMU's reset of a PCI device resets SR-IOV as well. */
static inline void version_sriov_reset(PCIDevice *device)
{
    (void)device;
}

static inline void version_ari_init(PCIDevice *device, uint16_t at)
{
    pcie_ari_init(device, at);
}

static inline void version_set_reset(DeviceClass *class, void (*reset)(DeviceState *))
{
    device_class_set_legacy_reset(class, reset);
}

#define VERSION_PROPERTY const Property
#define VERSION_PROPERTIES_END

#else

static inline bool version_sriov_init(PCIDevice *device, uint16_t at, const char *type, uint16_t id, uint16_t vfs,
                                      uint16_t first, Error **errp)
{
    (void)errp;
    pcie_sriov_pf_init(device, at, type, id, vfs, vfs, first, 1);
    return true;
}

static inline void version_register_vf_bar(PCIDevice *device, uint8_t type, MemoryRegion *bar)
{
    (void)type;
    pcie_sriov_vf_register_bar(device, 0, bar);
}

static inline void version_sriov_config_write(PCIDevice *device, uint32_t address, uint32_t value, int length)
{
    pcie_sriov_config_write(device, address, value, length);
}

static inline void version_sriov_reset(PCIDevice *device)
{
    pcie_sriov_pf_disable_vfs(device);
}

static inline void version_ari_init(PCIDevice *device, uint16_t at)
{
    pcie_ari_init(device, at, 0);
}

static inline void version_set_reset(DeviceClass *class, void (*reset)(DeviceState *))
{
    class->reset = reset;
}

#define VERSION_PROPERTY Property
#define VERSION_PROPERTIES_END DEFINE_PROP_END_OF_LIST(),

#endif
#endif
