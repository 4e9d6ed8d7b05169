/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP segmentation offload: one large packet with a header becomes many frames. */
#include "connectx.h"

#define PROTOCOL_TCP 6
#define SEQUENCE 4
#define FLAGS 13
#define FIN_AND_PSH 0x09

static void set_lengths(Frame *frame, uint32_t network, uint32_t number)
{
    uint8_t *header = frame->bytes + network;
    uint32_t length = frame->length - network;

    if (header[0] >> 4 == 4) {
        stw_be_p(header + 2, length);
        stw_be_p(header + 4, lduw_be_p(header + 4) + number);
    } else {
        stw_be_p(header + 4, length - 40);
    }
}

/* The first bytes of the packet are the header, the rest is cut into pieces of the given size. */
void segmentation_send(Function *function, uint32_t queue, const uint8_t *packet, uint32_t length, uint32_t header, uint32_t size)
{
    g_autofree Frame *frame = g_new0(Frame, 1);

    frame->queue = queue;
    for (uint32_t offset = 0, number = 0; offset < length - header; offset += size, number++) {
        uint32_t network, transport, data = MIN(size, length - header - offset);
        uint8_t protocol;

        if (header + data > MAX_FRAME) {
            return;
        }
        memcpy(frame->bytes, packet, header);
        memcpy(frame->bytes + header, packet + header + offset, data);
        frame->length = header + data;
        if (!frame_headers(frame, &network, &transport, &protocol) || protocol != PROTOCOL_TCP) {
            return;
        }
        set_lengths(frame, network, number);
        stl_be_p(frame->bytes + transport + SEQUENCE, ldl_be_p(frame->bytes + transport + SEQUENCE) + offset);
        if (offset + data < length - header) {
            frame->bytes[transport + FLAGS] &= ~FIN_AND_PSH;
        }
        checksum_fill(frame);
        eswitch_transmit(function, frame);
    }
}
