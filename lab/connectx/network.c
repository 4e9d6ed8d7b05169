/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA packets on the network. RoCE packets are frames like all others: the switch takes them through the driver's flow tables, so
 * VLAN, spoof check, link state and the wire act on them. On InfiniBand, where the model has no switch with rules, a packet goes to
 * the function of this port that has the LID, or to those that have joined the multicast group with it.
 */
#include "connectx.h"

enum { TYPE_AT = 12, TAG = 4, ETHERNET = 14, IPV4 = 20, IPV6 = 40, UDP = 8, CHECK = 4 };
enum { TYPE_IPV4 = 0x800, TYPE_CVLAN = 0x8100, TYPE_IPV6 = 0x86dd, TYPE_ROCE1 = 0x8915 };
enum { PROTOCOL_UDP = 17, NEXT_HEADER_BTH = 0x1b, ROCE_PORT = 4791, DEFAULT_HOPS = 64 };
enum { ROCE_1 = 0, ROCE_2 = 2, L3_IPV4 = 0 }; /* MLX5_ROCE_VERSION_*, MLX5_ROCE_L3_TYPE_* in include/linux/mlx5/device.h */
#define MAPPED_BYTES 12

static const uint8_t mapped[MAPPED_BYTES] = { [10] = 0xff, [11] = 0xff };

static uint32_t headers_end(const Frame *frame)
{
    return ETHERNET + (frame_is_tagged(frame) ? TAG : 0);
}

static bool is_udp_to_roce(const uint8_t *transport)
{
    return lduw_be_p(transport + 2) == ROCE_PORT;
}

/* Returns where the base transport header begins; 0 if the frame is no RoCE packet. */
static uint32_t transport_of(const Frame *frame, uint32_t network)
{
    const uint8_t *header = frame->bytes + network;

    switch (lduw_be_p(header - 2)) {
    case TYPE_ROCE1:
        return header[6] == NEXT_HEADER_BTH ? network + IPV6 : 0;
    case TYPE_IPV4:
        return header[0] == 0x45 && header[9] == PROTOCOL_UDP && is_udp_to_roce(header + IPV4) ? network + IPV4 + UDP : 0;
    case TYPE_IPV6:
        return header[6] == PROTOCOL_UDP && is_udp_to_roce(header + IPV6) ? network + IPV6 + UDP : 0;
    default:
        return 0;
    }
}

/* Whether a function that has RoCE enabled sends or receives this frame as RDMA. */
bool frame_is_rdma(const Port *port, uint16_t vport, const Frame *frame)
{
    return port->vport[vport].roce && transport_of(frame, headers_end(frame));
}

static void put_ipv4(uint8_t *header, const uint8_t *source, const Path *path, uint32_t length)
{
    header[0] = 0x45;
    header[1] = path->traffic_class;
    stw_be_p(header + 2, IPV4 + length);
    stw_be_p(header + 6, 0x4000); /* do not fragment */
    header[8] = path->hops ? path->hops : DEFAULT_HOPS;
    header[9] = PROTOCOL_UDP;
    memcpy(header + 12, source + MAPPED_BYTES, 4);
    memcpy(header + 16, path->gid + MAPPED_BYTES, 4);
    stw_be_p(header + 10, (uint16_t)~checksum_fold(checksum_add(header, IPV4, 0)));
}

/* An IPv6 header, or the global routing header of RoCE v1, which differs in its next header. */
static void put_ipv6(uint8_t *header, const uint8_t *source, const Path *path, uint32_t length, uint8_t next)
{
    stl_be_p(header, 6u << 28 | (uint32_t)path->traffic_class << 20);
    stw_be_p(header + 4, length);
    header[6] = next;
    header[7] = path->hops ? path->hops : DEFAULT_HOPS;
    memcpy(header + 8, source, 16);
    memcpy(header + 24, path->gid, 16);
}

static uint32_t put_udp(uint8_t *header, const Path *path, uint32_t length)
{
    stw_be_p(header, path->udp_source ? path->udp_source : 0xc000);
    stw_be_p(header + 2, ROCE_PORT);
    stw_be_p(header + 4, UDP + length);
    return UDP;
}

static uint32_t put_ethernet(Frame *frame, const uint8_t *address, const Path *path, uint16_t type)
{
    memcpy(frame->bytes, path->mac, 6);
    memcpy(frame->bytes + 6, AT(address, roce_addr_layout__source_mac_47_32), 6);
    stw_be_p(frame->bytes + TYPE_AT, type);
    return ETHERNET;
}

/* The packet's own checksum (ICRC) is left zero: no receiver of the model looks at it. */
static void send_roce(Function *function, const Path *path, const RdmaPacket *packet)
{
    g_autofree Frame *frame = g_new0(Frame, 1);
    const uint8_t *address = function->gid[path->source % GIDS];
    const uint8_t *source = AT(address, roce_addr_layout__source_l3_address);
    uint32_t length = packet->length + CHECK, at;

    if (GET(address, roce_addr_layout__roce_version) == ROCE_1) {
        at = put_ethernet(frame, address, path, TYPE_ROCE1);
        put_ipv6(frame->bytes + at, source, path, length, NEXT_HEADER_BTH);
        at += IPV6;
    } else if (GET(address, roce_addr_layout__roce_l3_type) == L3_IPV4) {
        at = put_ethernet(frame, address, path, TYPE_IPV4);
        put_ipv4(frame->bytes + at, source, path, UDP + length);
        at += IPV4;
        at += put_udp(frame->bytes + at, path, length);
    } else {
        at = put_ethernet(frame, address, path, TYPE_IPV6);
        put_ipv6(frame->bytes + at, source, path, UDP + length, PROTOCOL_UDP);
        at += IPV6;
        at += put_udp(frame->bytes + at, path, length);
    }
    memcpy(frame->bytes + at, packet->bytes, packet->length);
    frame->length = at + length;
    if (GET(address, roce_addr_layout__vlan_valid)) {
        frame_tag(frame, GET(address, roce_addr_layout__vlan_id));
    }
    eswitch_transmit(function, frame);
}

static void put_global(const Function *function, const Path *path, RdmaPacket *packet)
{
    uint8_t source[16];

    stq_be_p(source, SUBNET_PREFIX);
    stq_be_p(source + 8, function->port->vport[function->vport].port_guid);
    put_ipv6(packet->header, source, path, packet->length + CHECK, NEXT_HEADER_BTH);
}

/* Into an active port of the packet's partition. */
static void deliver(const Function *sender, uint16_t number, uint16_t lid, const RdmaPacket *packet)
{
    Port *port = sender->port;
    Function *receiver = function_of_vport(port, number);

    if (!receiver || !receiver->initialized || infiniband_state(port, number) != PORT_ACTIVE ||
        !subnet_list_accepts(port, number, lduw_be_p(packet->bytes + 2))) {
        return;
    }
    vport_count_infiniband(port, number, false, lid, packet->length);
    if (lid >= FIRST_MULTICAST_LID) {
        multicast_receive(receiver, sender, packet);
    } else {
        rdma_receive(receiver, packet);
    }
}

static void route(Function *sender, uint16_t lid, const RdmaPacket *packet)
{
    Port *port = sender->port;

    for (unsigned number = 0; lid >= FIRST_MULTICAST_LID && number <= port->vfs; number++) {
        if (subnet_group_has(port, lid, number)) {
            deliver(sender, number, lid, packet);
        }
    }
    if (lid >= 1 && lid <= port->vfs + 1 && !(lid == MANAGER_LID && subnet_administrator_receive(sender, packet))) {
        deliver(sender, lid - 1, lid, packet);
    }
}

static void send_infiniband(Function *function, const Path *path, const RdmaPacket *packet)
{
    Port *port = function->port;
    g_autofree RdmaPacket *arrived = g_memdup2(packet, sizeof(*packet));

    arrived->source_lid = 1 + function->vport;
    stw_be_p(arrived->bytes + 2, subnet_list_key(port, function->vport, path->key_index));
    if (path->global) {
        put_global(function, path, arrived);
    }
    vport_count_infiniband(port, function->vport, true, path->lid, packet->length);
    if (!loss_takes(port) && infiniband_state(port, function->vport) == PORT_ACTIVE) {
        route(function, path->lid, arrived);
    }
}

void network_send(Function *function, const Path *path, const RdmaPacket *packet)
{
    if (function->port->dead) {
        return;
    }
    if (function->port->infiniband) {
        send_infiniband(function, path, packet);
    } else {
        send_roce(function, path, packet);
    }
}

static bool has_gid(const Function *function, const uint8_t gid[16])
{
    for (unsigned i = 0; i < GIDS; i++) {
        if (!memcmp(function->gid[i], gid, 16)) {
            return true;
        }
    }
    return false;
}

/* A GID has the address; that of IPv4 is mapped into IPv6. */
static void gid_of(uint8_t gid[16], const uint8_t *address, bool version4)
{
    if (version4) {
        memcpy(gid, mapped, MAPPED_BYTES);
        memcpy(gid + MAPPED_BYTES, address, 4);
    } else {
        memcpy(gid, address, 16);
    }
}

/* A frame that has reached a function with RoCE enabled. What is not addressed to one of its GIDs is lost. */
void network_receive(Function *function, const Frame *frame)
{
    uint32_t network = headers_end(frame), transport = transport_of(frame, network);
    const uint8_t *header = frame->bytes + network;
    uint16_t type = lduw_be_p(header - 2);
    bool version4 = type == TYPE_IPV4;
    uint8_t destination[16];
    g_autofree RdmaPacket *packet = NULL;
    uint32_t end = network + (version4 ? lduw_be_p(header + 2) : IPV6 + lduw_be_p(header + 4));

    if (end > frame->length || end < transport + CHECK || end - transport - CHECK > sizeof(packet->bytes)) {
        return;
    }
    gid_of(destination, header + (version4 ? 16 : 24), version4);
    if (!has_gid(function, destination)) {
        return;
    }
    packet = g_new0(RdmaPacket, 1);
    gid_of(packet->source, header + (version4 ? 12 : 8), version4);
    packet->header_kind = type == TYPE_ROCE1 ? HEADER_GRH : version4 ? HEADER_IPV4 : HEADER_IPV6;
    memcpy(packet->header + (version4 ? sizeof(packet->header) - IPV4 : 0), header, version4 ? IPV4 : IPV6);
    packet->length = end - transport - CHECK;
    memcpy(packet->bytes, frame->bytes + transport, packet->length);
    rdma_receive(function, packet);
}
