/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cards. Device IDs are those of mlx5_core_pci_table (main.c) and pci.ids. Limits are the model's own where no public source
 * names the card's; the firmware versions are of the branch that this card has. PSIDs are invented.
 */
#include "connectx.h"

/* Bits of PTYS (enum mlx5e_link_mode in include/linux/mlx5/port.h); faster modes need extended ones, which the model lacks. */
#define SPEED_10G (1u << 12)
#define SPEED_25G (1u << 28)
#define SPEED_40G (1u << 15)
#define SPEED_100G (1u << 20)

static const CardModel cards[] = {
    {
        .name = "connectx4lx", .description = "ConnectX-4 Lx EN adapter card", .part_number = "LAB4121A-ACAT",
        .psid = "LAB0000000004", .firmware = "14.32.1010",
        .pf_device = 0x1015, .vf_device = 0x1016, .subsystem = 0x0003, .max_vfs = 64,
        .pf_vectors = 64, .vf_vectors = 12, .acl_tables = 0xffff,
        .ethernet = true, .qos = true, .vst = true, .acl = true, .roce = true,
        .ethernet_speeds = SPEED_10G | SPEED_25G, .best_speed = SPEED_25G,
    },
    {
        .name = "connectx5", .description = "ConnectX-5 VPI adapter card", .part_number = "LAB556A-ECAT",
        .psid = "LAB0000000005", .firmware = "16.35.4030",
        .pf_device = 0x1017, .vf_device = 0x1018, .subsystem = 0x0008, .max_vfs = 127,
        .pf_vectors = 64, .vf_vectors = 12, .acl_tables = 0xffff,
        .ethernet = true, .infiniband = true, .qos = true, .vst = true, .acl = true, .roce = true,
        .ethernet_speeds = SPEED_10G | SPEED_25G | SPEED_40G | SPEED_100G, .best_speed = SPEED_100G,
    },
    {
        .name = "connectx6", .description = "ConnectX-6 VPI adapter card", .part_number = "LAB653105A-HDAT",
        .psid = "LAB0000000006", .firmware = "20.41.1000",
        .pf_device = 0x101b, .vf_device = 0x101c, .subsystem = 0x0007, .max_vfs = 127,
        .pf_vectors = 64, .vf_vectors = 12, .acl_tables = 0xffff,
        .ethernet = true, .infiniband = true, .qos = true, .vst = true, .acl = true, .roce = true,
        .ethernet_speeds = SPEED_10G | SPEED_25G | SPEED_40G | SPEED_100G, .best_speed = SPEED_100G,
    },
    {
        .name = "connectx6dx", .description = "ConnectX-6 Dx EN adapter card", .part_number = "LAB623106AC-CDAT",
        .psid = "LAB0000000436", .firmware = "22.41.1000",
        .pf_device = 0x101d, .vf_device = 0x101e, .subsystem = 0x0016, .max_vfs = 127,
        .pf_vectors = 64, .vf_vectors = 12, .acl_tables = 0xffff,
        .ethernet = true, .qos = true, .vst = true, .acl = true, .roce = true,
        .ethernet_speeds = SPEED_10G | SPEED_25G | SPEED_40G | SPEED_100G, .best_speed = SPEED_100G,
    },
    {
        .name = "connectx7", .description = "ConnectX-7 VPI adapter card", .part_number = "LAB75310AAS-NEAT",
        .psid = "LAB0000000838", .firmware = "28.41.1000",
        .pf_device = 0x1021, .vf_device = 0x101e, .subsystem = 0x0041, .max_vfs = 127,
        .pf_vectors = 64, .vf_vectors = 12, .acl_tables = 0xffff,
        .ethernet = true, .infiniband = true, .qos = true, .vst = true, .acl = true, .roce = true,
        .ethernet_speeds = SPEED_10G | SPEED_25G | SPEED_40G | SPEED_100G, .best_speed = SPEED_100G,
    },
    {
        .name = "bluefield2", .description = "BlueField-2 DPU", .part_number = "LABMBF2M516A-CEEOT",
        .psid = "LAB0000000703", .firmware = "24.41.1000",
        .pf_device = 0xa2d6, .vf_device = 0x101e, .subsystem = 0x0061, .max_vfs = 127,
        .pf_vectors = 64, .vf_vectors = 12, .acl_tables = 0xffff,
        .ethernet = true, .infiniband = true, .qos = true, .vst = true, .acl = true, .roce = true,
        .ethernet_speeds = SPEED_10G | SPEED_25G | SPEED_40G | SPEED_100G, .best_speed = SPEED_100G,
    },
};

const CardModel *card_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(cards); i++) {
        if (!strcmp(cards[i].name, name)) {
            return &cards[i];
        }
    }
    return NULL;
}

/* The caller frees it. */
char *card_names(void)
{
    GString *names = g_string_new(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(cards); i++) {
        g_string_append_printf(names, "%s%s", i ? ", " : "", cards[i].name);
    }
    return g_string_free(names, false);
}
