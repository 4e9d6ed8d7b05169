/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A window in a function's configuration space through which the machine gives the device orders: a vendor-specific extended
 * capability. A line of text that is written there runs at its newline and is replaced by the reply; neither a driver nor a reset
 * of the device is in the way, and `printf` and `dd` are enough (lab/connectx/control).
 */
#ifndef CONNECTX_WINDOW_H
#define CONNECTX_WINDOW_H

#include "qemu_version.h"

void window_init(PCIDevice *device);

/* The line that this write to the configuration space completes, without its newline; NULL: none. The caller frees it. */
char *window_line(PCIDevice *device, uint32_t address, int length);

/* Replaces the line by the reply. */
void window_reply(PCIDevice *device, const char *reply);

#endif
