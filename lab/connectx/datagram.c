/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Datagrams: messages of one packet to any queue pair, among them those of the kernel's connection manager. What finds no receive
 * buffer is lost. A received message follows 40 bytes for the header of the network layer.
 */
#include "connectx.h"

#define SEND_ONLY 0x64
#define SEND_ONLY_IMMEDIATE 0x65
#define SEND_REQUEST 0xa
#define SEND_REQUEST_IMMEDIATE 0xb
#define EXTENDED_HEADER 8 /* key and the sender's queue pair */
#define GLOBAL 40
#define HAS_GRH 0x40
#define RESPONSE_SEND 2
#define RESPONSE_SEND_IMMEDIATE 3
/* Offsets in the request, after the control segment (struct mlx5_av in include/linux/mlx5/qp.h). */
enum { KEY = 16, DESTINATION = 24, LID = 30, MAC = 36, TRAFFIC_CLASS = 42, HOPS = 43, SOURCE = 44, GID = 48, DATA = 64 };

static void path_of(Path *path, const uint8_t *wqe)
{
    memcpy(path->mac, wqe + MAC, sizeof(path->mac));
    memcpy(path->gid, wqe + GID, sizeof(path->gid));
    path->source = ldl_be_p(wqe + SOURCE) >> 20;
    path->global = wqe[SOURCE] & HAS_GRH;
    path->traffic_class = wqe[TRAFFIC_CLASS];
    path->hops = wqe[HOPS];
    path->lid = path->udp_source = lduw_be_p(wqe + LID);
}

RdmaResult datagram_send(Function *function, QueuePair *pair, const uint8_t *wqe, uint32_t size)
{
    g_autofree RdmaPacket *packet = g_new(RdmaPacket, 1);
    g_autofree uint8_t *bytes = NULL;
    bool immediate = wqe[3] == SEND_REQUEST_IMMEDIATE;
    uint32_t number = pair->service == SERVICE_GENERAL ? 1 : pair->resource.id;
    Message message;
    Path path;

    if (wqe[3] != SEND_REQUEST && !immediate) {
        return RDMA_DONE;
    }
    if (size < DATA || !message_prepare(&message, wqe + DATA, wqe + size)) {
        return RDMA_LOCAL_ERROR;
    }
    bytes = message.bytes;
    if (message.length > LARGEST_MTU || !message_gather(function, pair->domain, wqe + DATA, wqe + size, &message)) {
        return RDMA_LOCAL_ERROR;
    }
    path_of(&path, wqe);
    path.key_index = pair->path.key_index;
    packet_begin(packet, immediate ? SEND_ONLY_IMMEDIATE : SEND_ONLY, ldl_be_p(wqe + DESTINATION) & 0xffffff, pair->next_psn++,
                 false);
    memcpy(packet->bytes + packet->length, wqe + KEY, 4);
    stl_be_p(packet->bytes + packet->length + 4, number);
    packet->length += EXTENDED_HEADER;
    if (immediate) {
        memcpy(packet->bytes + packet->length, wqe + 12, 4);
        packet->length += 4;
    }
    packet_append_data(packet, message.bytes, message.length);
    network_send(function, &path, packet);
    return RDMA_DONE;
}

/* The place of the sender in the completion (handle_responder in drivers/infiniband/hw/mlx5/cq.c). */
static void describe_sender(const Function *function, const QueuePair *pair, const RdmaPacket *packet, uint8_t entry[64])
{
    bool infiniband = function->port->infiniband;
    uint32_t number = ldl_be_p(packet->bytes + PACKET_HEADER + 4) & 0xffffff;

    stw_be_p(entry + 22, packet->source_lid);
    stl_be_p(entry + 24, (infiniband && !packet->header[0] ? 0 : 1u << 28) | (uint32_t)packet->header_kind << 24 | number);
    if (pair->service == SERVICE_GENERAL) {
        stl_be_p(entry + 36, DEFAULT_PARTITION);
    }
}

void datagram_receive(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    bool immediate = packet->bytes[PACKET_OPCODE] == SEND_ONLY_IMMEDIATE;
    uint32_t at = PACKET_HEADER + EXTENDED_HEADER + (immediate ? 4 : 0), length = packet_data_length(packet, at);
    g_autofree uint8_t *bytes = NULL;
    uint8_t entry[64] = { 0 };
    Message message = { .length = GLOBAL + length };

    if (packet->length < at || (packet->bytes[PACKET_OPCODE] != SEND_ONLY && !immediate) ||
        (pair->service == SERVICE_DATAGRAM && (uint32_t)ldl_be_p(packet->bytes + PACKET_HEADER) != pair->key) ||
        !receive_is_ready(function, pair)) {
        return;
    }
    message.bytes = bytes = g_malloc(message.length);
    memcpy(bytes, packet->header, GLOBAL);
    memcpy(bytes + GLOBAL, packet->bytes + at, length);
    if (receive_fill(function, pair, &message) != RDMA_DONE) {
        return;
    }
    if (immediate) {
        memcpy(entry + 36, packet->bytes + at - 4, 4);
    }
    describe_sender(function, pair, packet, entry);
    receive_complete(function, pair, immediate ? RESPONSE_SEND_IMMEDIATE : RESPONSE_SEND, message.length, entry);
}
