/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BAR: the initialization segment (struct mlx5_init_seg in include/linux/mlx5/device.h) and the doorbells in the UARs. */
#include "connectx.h"

#define HEALTH 0x200
#define HEALTH_END 0x240
#define COMMAND_INTERFACE 5
#define LOG_ENTRIES 5
#define LOG_STRIDE 6
#define NOT_INITIALIZED 0x80000000u

static uint32_t command_queue_low(const Function *function)
{
    return LOG_ENTRIES << 4 | LOG_STRIDE | function->interface_state << 8;
}

/* The clock of 156.25 MHz. */
static uint64_t clock_read(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) / 32 * 5;
}

/* A VF waits here until the PF's driver has enabled it (wait_fw_init in main.c). */
static uint32_t initializing(const Function *function)
{
    return function->port->vport[function->vport].enabled ? 0 : NOT_INITIALIZED;
}

static uint32_t segment_register(Function *function, hwaddr offset)
{
    Port *port = function->port;

    switch (offset) {
    case 0x0:
        return port->firmware_minor << 16 | port->firmware_major;
    case 0x4:
        return COMMAND_INTERFACE << 16 | port->firmware_patch;
    case 0x10:
        return function->command_queue >> 32;
    case 0x14:
        return command_queue_low(function);
    case 0x1fc:
        return initializing(function);
    case HEALTH ... HEALTH_END - 1:
        return health_read(port, offset - HEALTH);
    case 0x1000:
        return clock_read() >> 32;
    case 0x1004:
        return clock_read() & 0xffffffffu;
    case 0x1010:
        return health_counter(port);
    default:
        return 0;
    }
}

/* The driver reads single bytes of the health buffer: QEMU takes them from the upper end of what is returned for their offset. */
static uint64_t segment_read(void *opaque, hwaddr offset, unsigned size)
{
    (void)size;
    return (uint32_t)(segment_register(opaque, offset & ~(hwaddr)3) << offset % 4 * 8);
}

static void segment_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    Function *function = opaque;

    (void)size;
    switch (offset) {
    case 0x10: /* only when the driver starts (mlx5_cmd_init) */
        command_queue_forget(function);
        function->command_queue = (function->command_queue & 0xffffffffu) | value << 32;
        break;
    case 0x14:
        function->command_queue = (function->command_queue & ~0xffffffffULL) | (value & 0xfffff000u);
        function->interface_state = value >> 8 & 7;
        break;
    case 0x18:
        command_queue_ring(function, migration_sends(function) ? value : 0);
        break;
    }
}

/* All of the BAR is big endian. */
const MemoryRegionOps segment_ops = {
    .read = segment_read,
    .write = segment_write,
    .endianness = DEVICE_BIG_ENDIAN,
    .impl = { .min_access_size = 4, .max_access_size = 4 },
    .valid = { .min_access_size = 1, .max_access_size = 8 },
};

/* Doorbells in each UAR page. */
enum { EQ_ARM = 0x40, EQ_UPDATE = 0x48, CQ_ARM = 0x20, SEND = 0x800, SEND_BUFFERS = 0x100, SEND_SIZE = 0x8 };

static uint64_t doorbell_read(void *opaque, hwaddr offset, unsigned size)
{
    (void)opaque;
    (void)offset;
    (void)size;
    return 0;
}

static void send_doorbell(Function *function, uint32_t number)
{
    QueuePair *pair = resource_find(function, OP_CREATE_QP, number);

    if (pair) {
        queue_pair_ring(function, pair);
    } else {
        send_queue_ring(function, number);
    }
}

static void doorbell_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    Function *function = opaque;
    uint32_t at = offset % PAGE;

    if (function->port->dead || !migration_sends(function)) {
        return;
    }
    if ((at == EQ_ARM || at == EQ_UPDATE) && size == 4) {
        event_queue_doorbell(function, value, at == EQ_ARM);
    } else if (at == CQ_ARM && size == 8) {
        completion_queue_arm(function, value & 0xffffff, value >> 32);
    } else if (at >= SEND && size == 8 && at % SEND_BUFFERS < SEND_SIZE) {
        send_doorbell(function, (value & 0xffffffff) >> 8);
    }
}

const MemoryRegionOps doorbell_ops = {
    .read = doorbell_read,
    .write = doorbell_write,
    .endianness = DEVICE_BIG_ENDIAN,
    .impl = { .min_access_size = 4, .max_access_size = 8 },
    .valid = { .min_access_size = 1, .max_access_size = 8 },
};
