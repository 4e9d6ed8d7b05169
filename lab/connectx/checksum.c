/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checksums that the sender left to the card: IPv4 header, TCP and UDP over IPv4 and IPv6. */
#include "connectx.h"

enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };

uint32_t checksum_add(const uint8_t *bytes, uint32_t length, uint32_t sum)
{
    for (uint32_t i = 0; i < length; i += 2) {
        sum += bytes[i] << 8 | (i + 1 < length ? bytes[i + 1] : 0);
    }
    return sum;
}

uint16_t checksum_fold(uint32_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

/* Offsets of the network and transport headers; false if there is no IP header. */
bool frame_headers(const Frame *frame, uint32_t *network, uint32_t *transport, uint8_t *protocol)
{
    const uint8_t *header;

    *network = frame_is_tagged(frame) ? 18 : 14;
    header = frame->bytes + *network;
    switch (lduw_be_p(header - 2)) {
    case 0x800:
        *transport = *network + (header[0] & 15) * 4;
        *protocol = header[9];
        return true;
    case 0x86dd:
        *transport = *network + 40;
        *protocol = header[6];
        return true;
    default:
        return false;
    }
}

static void fill_transport(Frame *frame, uint32_t at, uint32_t transport, uint32_t end, uint32_t pseudo)
{
    uint8_t *field = frame->bytes + at;
    uint16_t sum;

    stw_be_p(field, 0);
    sum = ~checksum_fold(checksum_add(frame->bytes + transport, end - transport, pseudo));
    /* UDP: a sum of 0 means that there is none. */
    stw_be_p(field, at == transport + 6 && !sum ? 0xffff : sum);
}

/* Returns whether a transport header follows: a fragment has none. */
static bool fill_ipv4(uint8_t *header, uint32_t length)
{
    stw_be_p(header + 10, 0);
    stw_be_p(header + 10, (uint16_t)~checksum_fold(checksum_add(header, length, 0)));
    return !(lduw_be_p(header + 6) & 0x3fff);
}

void checksum_fill(Frame *frame)
{
    uint32_t network, transport, end, at;
    uint8_t protocol, *header;
    bool version4;

    if (!frame_headers(frame, &network, &transport, &protocol)) {
        return;
    }
    header = frame->bytes + network;
    version4 = header[0] >> 4 == 4;
    end = network + (version4 ? lduw_be_p(header + 2) : 40 + lduw_be_p(header + 4));
    if (end > frame->length || end < transport || (version4 && !fill_ipv4(header, transport - network))) {
        return;
    }
    at = transport + (protocol == PROTOCOL_TCP ? 16 : 6);
    if ((protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) && at + 2 <= end) {
        uint32_t pseudo = checksum_add(header + (version4 ? 12 : 8), version4 ? 8 : 32, protocol + end - transport);

        fill_transport(frame, at, transport, end, pseudo);
    }
}
