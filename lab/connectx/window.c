/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "window.h"

#define CAPABILITY 0x400
#define WINDOW (CAPABILITY + 8)
#define WINDOW_LENGTH 0x1f8

void window_init(PCIDevice *device)
{
    pcie_add_capability(device, PCI_EXT_CAP_ID_VNDR, 1, CAPABILITY, WINDOW_LENGTH + 8);
    pci_set_long(device->config + CAPABILITY + 4, (WINDOW_LENGTH + 8u) << 20);
    memset(device->wmask + WINDOW, 0xff, WINDOW_LENGTH);
}

char *window_line(PCIDevice *device, uint32_t address, int length)
{
    uint8_t *window = device->config + WINDOW, *end;

    if (address + length <= WINDOW || address >= WINDOW + WINDOW_LENGTH) {
        return NULL;
    }
    end = memchr(window, '\n', WINDOW_LENGTH);
    if (!end || (uint32_t)(end - window) + WINDOW < address || (uint32_t)(end - window) + WINDOW >= address + length) {
        return NULL;
    }
    return g_strndup((char *)window, end - window);
}

void window_reply(PCIDevice *device, const char *reply)
{
    char *window = (char *)device->config + WINDOW;

    memset(window, 0, WINDOW_LENGTH);
    snprintf(window, WINDOW_LENGTH, "%s\n", reply);
}
