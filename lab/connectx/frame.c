/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames: VLAN tags, and the fields that flow tables match. */
#include "connectx.h"

#define TYPE_AT 12
#define HEADER 14
#define TAG 4
enum { TYPE_IPV4 = 0x800, TYPE_IPV6 = 0x86dd, TYPE_CVLAN = 0x8100, TYPE_SVLAN = 0x88a8 };
enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };

bool frame_is_tagged(const Frame *frame)
{
    return lduw_be_p(frame->bytes + TYPE_AT) == TYPE_CVLAN;
}

void frame_tag(Frame *frame, uint16_t tag)
{
    if (frame->length + TAG > MAX_FRAME) {
        return;
    }
    memmove(frame->bytes + TYPE_AT + TAG, frame->bytes + TYPE_AT, frame->length - TYPE_AT);
    stw_be_p(frame->bytes + TYPE_AT, TYPE_CVLAN);
    stw_be_p(frame->bytes + TYPE_AT + 2, tag);
    frame->length += TAG;
}

void frame_untag(Frame *frame)
{
    memmove(frame->bytes + TYPE_AT, frame->bytes + TYPE_AT + TAG, frame->length - TYPE_AT - TAG);
    frame->length -= TAG;
}

/* Returns the type that follows the tag, if there is one. */
static uint16_t dissect_tag(const Frame *frame, uint8_t *headers, const uint8_t **network)
{
    uint16_t type = lduw_be_p(frame->bytes + TYPE_AT), tag = lduw_be_p(frame->bytes + HEADER);

    *network = frame->bytes + HEADER;
    if (type != TYPE_CVLAN && type != TYPE_SVLAN) {
        return type;
    }
    if (type == TYPE_CVLAN) {
        SET(headers, fte_match_set_lyr_2_4__cvlan_tag, 1);
    } else {
        SET(headers, fte_match_set_lyr_2_4__svlan_tag, 1);
    }
    SET(headers, fte_match_set_lyr_2_4__first_vid, tag & 0xfff);
    SET(headers, fte_match_set_lyr_2_4__first_cfi, tag >> 12 & 1);
    SET(headers, fte_match_set_lyr_2_4__first_prio, tag >> 13);
    *network += TAG;
    return lduw_be_p(frame->bytes + HEADER + 2);
}

/* Returns the transport header; NULL for a fragment. */
static const uint8_t *dissect_ipv4(const uint8_t *network, uint8_t *headers)
{
    bool fragment = lduw_be_p(network + 6) & 0x3fff;

    SET(headers, fte_match_set_lyr_2_4__ip_version, 4);
    SET(headers, fte_match_set_lyr_2_4__ip_protocol, network[9]);
    SET(headers, fte_match_set_lyr_2_4__ip_dscp, network[1] >> 2);
    SET(headers, fte_match_set_lyr_2_4__ip_ecn, network[1]);
    SET(headers, fte_match_set_lyr_2_4__frag, fragment);
    memcpy(AT(headers, fte_match_set_lyr_2_4__src_ipv4_src_ipv6) + 12, network + 12, 4);
    memcpy(AT(headers, fte_match_set_lyr_2_4__dst_ipv4_dst_ipv6) + 12, network + 16, 4);
    return fragment ? NULL : network + (network[0] & 15) * 4;
}

static const uint8_t *dissect_ipv6(const uint8_t *network, uint8_t *headers)
{
    SET(headers, fte_match_set_lyr_2_4__ip_version, 6);
    SET(headers, fte_match_set_lyr_2_4__ip_protocol, network[6]);
    memcpy(AT(headers, fte_match_set_lyr_2_4__src_ipv4_src_ipv6), network + 8, 16);
    memcpy(AT(headers, fte_match_set_lyr_2_4__dst_ipv4_dst_ipv6), network + 24, 16);
    return network + 40;
}

static void dissect_transport(const uint8_t *transport, uint8_t *headers)
{
    switch (GET(headers, fte_match_set_lyr_2_4__ip_protocol)) {
    case PROTOCOL_TCP:
        memcpy(AT(headers, fte_match_set_lyr_2_4__tcp_sport), transport, 4);
        SET(headers, fte_match_set_lyr_2_4__tcp_flags, lduw_be_p(transport + 12) & 0x1ff);
        break;
    case PROTOCOL_UDP:
        memcpy(AT(headers, fte_match_set_lyr_2_4__udp_sport), transport, 4);
        break;
    }
}

/* A frame is never shorter than its buffer, so that headers that were cut off are read as what is left in the buffer. */
void frame_dissect(Frame *frame)
{
    uint8_t *headers = AT(frame->match, fte_match_param__outer_headers), *misc = AT(frame->match, fte_match_param__misc_parameters);
    const uint8_t *network, *transport = NULL;
    uint16_t type;

    memset(frame->match, 0, sizeof(frame->match));
    memcpy(AT(headers, fte_match_set_lyr_2_4__dmac_47_16), frame->bytes, 6);
    memcpy(AT(headers, fte_match_set_lyr_2_4__smac_47_16), frame->bytes + 6, 6);
    type = dissect_tag(frame, headers, &network);
    SET(headers, fte_match_set_lyr_2_4__ethertype, type);
    if (type == TYPE_IPV4) {
        transport = dissect_ipv4(network, headers);
    } else if (type == TYPE_IPV6) {
        transport = dissect_ipv6(network, headers);
    }
    if (transport) {
        dissect_transport(transport, headers);
    }
    SET(misc, fte_match_set_misc__source_port, frame->source);
    SET(misc, fte_match_set_misc__source_sqn, frame->queue);
}
