/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stand-in for a GPU: a PCI function with the identity and the BARs of an H100 and memory behind them, and nothing that computes.
 * Its registers are the lab's own (registers.h); no driver of NVIDIA can use it.
 */
#include "window.h"

#include "qemu/cutils.h"

#include "registers.h"

#define TYPE_STAND_IN_GPU "stand-in-gpu"
#define GPU(object) OBJECT_CHECK(Gpu, (object), TYPE_STAND_IN_GPU)

/* As lspci shows an H100 of 80 GB with SXM5 (its board: 16c1). Only the size of the memory differs, which there is 128 GiB. */
enum { VENDOR = 0x10de, DEVICE_ID = 0x2330, BOARD = 0x16c1, REVISION = 0xa1, CLASS = 0x0302 };
#define REGISTERS (16 * MiB)
#define THIRD_BAR (32 * MiB)
#define BAR_TYPE (PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH)
/* QEMU's extended capabilities begin at 0x100; 0x400 is the window of window.c. */
enum { EXPRESS = 0x60, ERRORS = 0x100 };
#define PAGE 4096
#define LINK_SPEED 5 /* 32 GT/s */
#define LANES 16
#define NOWHERE UINT64_MAX

typedef struct Gpu {
    PCIDevice device;
    MemoryRegion registers, memory, ram, poisoned_page, third;
    uint64_t size, poison; /* poison: offset of the byte; NOWHERE: none */
    uint32_t resets;
    uint16_t device_id; /* another one than DEVICE_ID: a GPU of another generation, which the driver does not take */
    bool in_config_write;
} Gpu;

/* A function-level reset comes by a write to the configuration space, all others do not. */
static void gpu_reset(DeviceState *state)
{
    Gpu *gpu = GPU(state);
    uint8_t *bytes = memory_region_get_ram_ptr(&gpu->ram);

    for (uint64_t at = 0; at < gpu->size; at += PAGE) {
        if (!buffer_is_zero(bytes + at, PAGE)) { /* writing would give the host's page to memory that was never used */
            memset(bytes + at, 0, PAGE);
        }
    }
    memory_region_set_dirty(&gpu->ram, 0, gpu->size);
    gpu->resets += gpu->in_config_write;
}

static uint64_t bar0_read(void *opaque, hwaddr offset, unsigned size)
{
    Gpu *gpu = opaque;
    const char *name = STAND_IN_GPU_NAME;
    uint32_t word = 0;

    (void)size;
    switch (offset) {
    case STAND_IN_GPU_MAGIC:
        return STAND_IN_GPU_MAGIC_VALUE;
    case STAND_IN_GPU_RESETS:
        return gpu->resets;
    case STAND_IN_GPU_NAME_AT ... STAND_IN_GPU_NAME_AT + STAND_IN_GPU_NAME_BYTES - 1:
        offset -= STAND_IN_GPU_NAME_AT;
        for (unsigned i = 0; i < 4 && offset + i < strlen(name); i++) {
            word |= (uint32_t)(uint8_t)name[offset + i] << 8 * i;
        }
        return word;
    default:
        return 0;
    }
}

static void bar0_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    (void)opaque;
    (void)offset;
    (void)value;
    (void)size;
}

static const MemoryRegionOps bar0_ops = {
    .read = bar0_read,
    .write = bar0_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

/* The page with the poisoned byte: whoever reads the byte, also another device, gets its complement. */
static uint8_t *poisoned_bytes(Gpu *gpu)
{
    return (uint8_t *)memory_region_get_ram_ptr(&gpu->ram) + gpu->poison / PAGE * PAGE;
}

static uint64_t poisoned_read(void *opaque, hwaddr offset, unsigned size)
{
    Gpu *gpu = opaque;
    uint64_t value = ldn_le_p(poisoned_bytes(gpu) + offset, size), at = gpu->poison % PAGE;

    return at >= offset && at < offset + size ? value ^ 0xffULL << 8 * (at - offset) : value;
}

static void poisoned_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    Gpu *gpu = opaque;

    stn_le_p(poisoned_bytes(gpu) + offset, size, value);
    memory_region_set_dirty(&gpu->ram, gpu->poison / PAGE * PAGE + offset, size);
}

static const MemoryRegionOps poisoned_ops = {
    .read = poisoned_read,
    .write = poisoned_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

static bool poison_set(Gpu *gpu, uint64_t offset)
{
    if (offset != NOWHERE && offset >= gpu->size) {
        return false;
    }
    memory_region_transaction_begin();
    gpu->poison = offset;
    memory_region_set_enabled(&gpu->poisoned_page, offset != NOWHERE);
    memory_region_set_address(&gpu->poisoned_page, offset == NOWHERE ? 0 : offset / PAGE * PAGE);
    memory_region_transaction_commit();
    return true;
}

/* The lanes that the link uses; the device can do all of them. */
static bool width_set(PCIDevice *device, uint64_t lanes)
{
    uint8_t *status = device->config + EXPRESS + PCI_EXP_LNKSTA;

    if (!lanes || lanes > LANES || lanes & (lanes - 1)) {
        return false;
    }
    pci_set_word(status, (pci_get_word(status) & ~PCI_EXP_LNKSTA_NLW) | QEMU_PCI_EXP_LNKSTA_NLW(lanes));
    return true;
}

/* `poison OFFSET`, `poison off`, `resets`, `width LANES`. */
static void order_run(Gpu *gpu, const char *line, GString *reply)
{
    g_auto(GStrv) words = g_strsplit(line, " ", 2);
    const char *verb = words[0] ? words[0] : "", *value = words[0] ? words[1] : NULL;
    char *end = NULL;

    if (!strcmp(verb, "resets") && !value) {
        g_string_append_printf(reply, "%u", gpu->resets);
    } else if (!strcmp(verb, "poison") && value && !strcmp(value, "off")) {
        poison_set(gpu, NOWHERE);
        g_string_append(reply, "ok");
    } else if (!strcmp(verb, "poison") && value && *value) {
        uint64_t offset = g_ascii_strtoull(value, &end, 0);

        g_string_append(reply, !*end && poison_set(gpu, offset) ? "ok" : "error: no offset in the memory");
    } else if (!strcmp(verb, "width") && value && *value) {
        uint64_t lanes = g_ascii_strtoull(value, &end, 0);

        g_string_append(reply, !*end && width_set(&gpu->device, lanes) ? "ok" : "error: no width of the link");
    } else {
        g_string_append_printf(reply, "error: unknown order %s", verb);
    }
}

static void config_write(PCIDevice *device, uint32_t address, uint32_t value, int length)
{
    Gpu *gpu = GPU(device);

    pci_default_write_config(device, address, value, length);
    gpu->in_config_write = true;
    pcie_cap_flr_write_config(device, address, value, length);
    gpu->in_config_write = false;

    g_autofree char *line = window_line(device, address, length);

    if (line) {
        g_autoptr(GString) reply = g_string_new(NULL);

        order_run(gpu, line, reply);
        window_reply(device, reply->str);
    }
}

/* 16 lanes of 32 GT/s, used in full: no port of QEMU limits them, because none transfers anything over a link. */
static void express_init(PCIDevice *device)
{
    uint8_t *express = device->config + EXPRESS;

    pcie_endpoint_cap_init(device, EXPRESS);
    pcie_cap_flr_init(device);
    pci_set_long(express + PCI_EXP_LNKCAP, (pci_get_long(express + PCI_EXP_LNKCAP) & ~(PCI_EXP_LNKCAP_SLS | PCI_EXP_LNKCAP_MLW)) |
                                               QEMU_PCI_EXP_LNKCAP_MLW(LANES) | LINK_SPEED);
    pci_set_word(express + PCI_EXP_LNKSTA, (pci_get_word(express + PCI_EXP_LNKSTA) & ~(PCI_EXP_LNKSTA_CLS | PCI_EXP_LNKSTA_NLW)) |
                                               QEMU_PCI_EXP_LNKSTA_NLW(LANES) | LINK_SPEED);
    pci_set_long(express + PCI_EXP_LNKCAP2, 0x3e); /* all speeds up to this one */
}

static bool memory_init(Gpu *gpu, Error **errp)
{
    Object *owner = OBJECT(gpu);
    Error *problem = NULL;

    if (gpu->size < MiB || gpu->size & (gpu->size - 1)) {
        error_setg(errp, "memory: use a power of two of at least 1M");
        return false;
    }
    memory_region_init(&gpu->memory, owner, "stand-in-gpu-memory", gpu->size);
    memory_region_init_ram(&gpu->ram, owner, "stand-in-gpu-ram", gpu->size, &problem);
    if (problem) {
        error_propagate(errp, problem);
        return false;
    }
    memory_region_add_subregion(&gpu->memory, 0, &gpu->ram);
    memory_region_init_io(&gpu->poisoned_page, owner, &poisoned_ops, gpu, "stand-in-gpu-poisoned", PAGE);
    memory_region_set_enabled(&gpu->poisoned_page, false);
    memory_region_add_subregion_overlap(&gpu->memory, 0, &gpu->poisoned_page, 1);
    if (!poison_set(gpu, gpu->poison)) {
        error_setg(errp, "poison: no offset in the memory");
        return false;
    }
    return true;
}

static void gpu_realize(PCIDevice *device, Error **errp)
{
    Gpu *gpu = GPU(device);
    Object *owner = OBJECT(gpu);

    if (!memory_init(gpu, errp)) {
        return;
    }
    memory_region_init_io(&gpu->registers, owner, &bar0_ops, gpu, "stand-in-gpu-registers", REGISTERS);
    memory_region_init_io(&gpu->third, owner, &bar0_ops, gpu, "stand-in-gpu-third", THIRD_BAR);
    pci_config_set_device_id(device->config, gpu->device_id);
    pci_register_bar(device, 0, BAR_TYPE, &gpu->registers);
    pci_register_bar(device, 2, BAR_TYPE, &gpu->memory);
    pci_register_bar(device, 4, BAR_TYPE, &gpu->third);
    express_init(device);
    if (!pcie_aer_init(device, PCI_ERR_VER, ERRORS, PCI_ERR_SIZEOF, errp)) {
        window_init(device);
    }
}

static void gpu_exit(PCIDevice *device)
{
    pcie_aer_exit(device);
    pcie_cap_exit(device);
}

static VERSION_PROPERTY properties[] = {
    DEFINE_PROP_SIZE("memory", Gpu, size, 64 * MiB),
    DEFINE_PROP_UINT64("poison", Gpu, poison, NOWHERE),
    DEFINE_PROP_UINT16("device-id", Gpu, device_id, DEVICE_ID),
    VERSION_PROPERTIES_END
};

static void gpu_class(ObjectClass *object, void *data)
{
    DeviceClass *class = DEVICE_CLASS(object);
    PCIDeviceClass *pci = PCI_DEVICE_CLASS(object);

    (void)data;
    pci->vendor_id = pci->subsystem_vendor_id = VENDOR;
    pci->device_id = DEVICE_ID;
    pci->subsystem_id = BOARD;
    pci->revision = REVISION;
    pci->class_id = CLASS;
    pci->realize = gpu_realize;
    pci->exit = gpu_exit;
    pci->config_write = config_write;
    version_set_reset(class, gpu_reset);
    device_class_set_props(class, properties);
    class->desc = STAND_IN_GPU_NAME;
    set_bit(DEVICE_CATEGORY_MISC, class->categories);
}

static InterfaceInfo interfaces[] = { { INTERFACE_PCIE_DEVICE }, { 0 } };
static const TypeInfo types[] = {
    {
        .name = TYPE_STAND_IN_GPU,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(Gpu),
        .class_init = gpu_class,
        .interfaces = interfaces,
    },
};
DEFINE_TYPES(types)
