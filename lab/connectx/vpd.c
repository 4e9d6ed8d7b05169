/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Vital product data: a capability with an address and a data register of one double word (drivers/pci/vpd.c). */
#include "connectx.h"

#define CAPABILITY 0x48
#define ADDRESS 2
#define DATA 4
#define DONE 0x8000
#define TAG_NAME 0x82
#define TAG_READ_ONLY 0x90
#define TAG_END 0x78

static void append(Port *port, const void *bytes, unsigned length)
{
    g_assert(port->vpd_length + length <= sizeof(port->vpd));
    memcpy(port->vpd + port->vpd_length, bytes, length);
    port->vpd_length += length;
}

static void append_tag(Port *port, uint8_t tag, uint16_t length)
{
    uint8_t header[3] = { tag, length & 0xff, length >> 8 };

    append(port, header, sizeof(header));
}

static void append_field(Port *port, const char *keyword, const char *value)
{
    uint8_t header[3] = { keyword[0], keyword[1], MIN(strlen(value), 32) };

    append(port, header, sizeof(header));
    append(port, value, header[2]);
}

/* The sum of all bytes up to the checksum's own is 0. */
static void append_checksum(Port *port)
{
    uint8_t header[4] = { 'R', 'V', 1, 0 }, sum = 0;

    append(port, header, 3);
    for (unsigned i = 0; i < port->vpd_length; i++) {
        sum += port->vpd[i];
    }
    header[3] = -sum;
    append(port, header + 3, 1);
}

static unsigned field_length(const char *value)
{
    return 3 + MIN(strlen(value), 32);
}

static void content(Port *port)
{
    const CardModel *card = port->card;
    static const uint8_t end = TAG_END;

    append_tag(port, TAG_NAME, strlen(card->description));
    append(port, card->description, strlen(card->description));
    append_tag(port, TAG_READ_ONLY, field_length(card->part_number) + field_length("A1") + field_length(port->serial) +
                                        field_length("PCIeGen4 x16") + 4);
    append_field(port, "PN", card->part_number);
    append_field(port, "EC", "A1");
    append_field(port, "SN", port->serial);
    append_field(port, "V0", "PCIeGen4 x16");
    append_checksum(port);
    append(port, &end, 1);
}

void vpd_init(Port *port)
{
    PCIDevice *device = &port->function.device;
    int at = pci_add_capability(device, PCI_CAP_ID_VPD, CAPABILITY, 8, &error_abort);

    content(port);
    pci_set_word(device->wmask + at + ADDRESS, 0xffff);
}

/* The driver writes an address with the flag clear, and the device sets the flag when the data is there. */
void vpd_config_write(Port *port, uint32_t address, int length)
{
    uint8_t *capability = port->function.device.config + CAPABILITY, data[4] = { 0 };
    uint16_t wanted;

    if (address + length <= CAPABILITY + ADDRESS || address >= CAPABILITY + DATA) {
        return;
    }
    wanted = pci_get_word(capability + ADDRESS);
    if (wanted & DONE) { /* a write of data: the flag becomes clear, and nothing is stored */
        pci_set_word(capability + ADDRESS, wanted & ~DONE);
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        data[i] = wanted + i < port->vpd_length ? port->vpd[wanted + i] : 0;
    }
    memcpy(capability + DATA, data, 4);
    pci_set_word(capability + ADDRESS, wanted | DONE);
}
