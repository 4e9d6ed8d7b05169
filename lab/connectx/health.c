/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The health buffer of the initialization segment (struct health_buffer in include/linux/mlx5/device.h; health.c). A dead card
 * answers no command, its counter stands still, and the buffer holds a syndrome with the request for a reset.
 */
#include "connectx.h"

#define FIRMWARE_VERSION 0x30 /* offsets in the buffer */
#define HARDWARE_ID 0x34
#define RESET_REQUEST 0x38
#define SYNDROME 0x3c

uint32_t health_counter(Port *port)
{
    return port->dead ? port->frozen_health : (uint32_t)(qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) / 100);
}

/* The firmware version must not read as all ones: that means that the device has left the bus. */
uint32_t health_read(Port *port, hwaddr offset)
{
    switch (offset) {
    case FIRMWARE_VERSION:
        return port->firmware_major << 24 | port->firmware_minor << 16 | port->firmware_patch;
    case HARDWARE_ID:
        return port->card->pf_device;
    case RESET_REQUEST:
        return port->dead ? 1u << 31 : 0;
    case SYNDROME:
        return port->dead ? (uint32_t)port->death_syndrome << 16 : 0;
    default:
        return 0;
    }
}

void health_die(Port *port, uint8_t syndrome)
{
    port->frozen_health = health_counter(port);
    port->death_syndrome = syndrome;
    port->dead = true;
}

/* As after a reset of the firmware: nothing that the driver made exists any more. */
void health_recover(Port *port)
{
    for (unsigned number = 0; number <= port->vfs; number++) {
        Function *function = function_of_vport(port, number);

        if (function) {
            function_clear(function);
        }
    }
    port->dead = false;
}
