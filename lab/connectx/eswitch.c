/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The embedded switch. A frame goes through the source vport's ingress ACL, the FDB and the destination's egress ACL, all as the
 * driver programmed them in the PF (esw/legacy.c, esw/acl/, eswitch_offloads.c), then to the destination's receive side.
 */
#include "connectx.h"

#define SHORTEST 60

static void to_uplink(Port *port, const Frame *frame)
{
    if (uplink_is_up(port) && port->nic) {
        qemu_send_packet(qemu_get_queue(port->nic), frame->bytes, frame->length);
    }
}

static bool strips(const Port *port, uint16_t number, const Verdict *verdict)
{
    return verdict->pop || GET(port->vport[number].switch_context, esw_vport_context__vport_cvlan_strip);
}

static void to_vport(Port *port, uint16_t number, const Frame *original)
{
    g_autofree Frame *frame = g_memdup2(original, sizeof(*original));
    Verdict verdict = { 0 };

    if (number == VPORT_UPLINK) {
        to_uplink(port, frame);
        return;
    }
    if (number > port->vfs) {
        return;
    }
    frame_dissect(frame);
    flow_walk(&port->function, flow_root(&port->function, TABLE_EGRESS, number), frame, &verdict);
    if (verdict.dropped) {
        return;
    }
    if (strips(port, number, &verdict) && frame_is_tagged(frame)) {
        frame_untag(frame);
    }
    receive_queue_deliver(port, number, frame);
}

/* Without an FDB, the uplink belongs to the PF, except for RDMA between two queue pairs of the PF. */
static void forward_without_rules(Port *port, const Frame *frame)
{
    bool own = frame->rdma && !memcmp(frame->bytes, port->vport[0].mac, 6);

    to_vport(port, frame->source == VPORT_UPLINK || own ? 0 : VPORT_UPLINK, frame);
}

/* Frames do not return to their sender, but RDMA between two queue pairs of one function does. */
static void forward(Port *port, Frame *frame)
{
    FlowTable *table = flow_root(&port->function, TABLE_FDB, 0);
    Verdict verdict = { 0 };

    if (!table) {
        forward_without_rules(port, frame);
        return;
    }
    frame_dissect(frame);
    flow_walk(&port->function, table, frame, &verdict);
    if (!verdict.matched && frame->source != VPORT_UPLINK) {
        verdict.vports[verdict.vport_count++] = VPORT_UPLINK;
    }
    for (unsigned i = 0; !verdict.dropped && i < verdict.vport_count; i++) {
        if (verdict.vports[i] != frame->source || frame->rdma) {
            to_vport(port, verdict.vports[i], frame);
        }
    }
}

/* An ingress ACL may push a tag; the switch's own VLAN context tags what has none (virtual switch tagging). */
static void tag_sent(Function *function, Frame *frame, const Verdict *verdict)
{
    const uint8_t *context = function->port->vport[function->vport].switch_context;

    if (verdict->push) {
        frame_tag(frame, verdict->tag);
    } else if (function->vport && GET(context, esw_vport_context__vport_cvlan_insert) && !frame_is_tagged(frame)) {
        frame_tag(frame, GET(context, esw_vport_context__cvlan_pcp) << 13 | GET(context, esw_vport_context__cvlan_id));
    }
}

void eswitch_transmit(Function *function, Frame *frame)
{
    Port *port = function->port;
    Verdict verdict = { 0 };

    frame->source = function->vport;
    frame->rdma = frame_is_rdma(port, function->vport, frame);
    vport_count(port, function->vport, true, frame->rdma ? NULL : frame->bytes, frame->length);
    if (frame->length < 14 || port->dead || !vport_is_up(port, function->vport) || (frame->rdma && loss_takes(port))) {
        return;
    }
    frame_dissect(frame);
    flow_walk(&port->function, flow_root(&port->function, TABLE_INGRESS, function->vport), frame, &verdict);
    if (!verdict.dropped) {
        tag_sent(function, frame, &verdict);
        forward(port, frame);
    }
}

ssize_t eswitch_receive(NetClientState *client, const uint8_t *bytes, size_t length)
{
    Port *port = qemu_get_nic_opaque(client);
    g_autofree Frame *frame = g_new0(Frame, 1);

    if (length <= MAX_FRAME && length >= 14 && uplink_is_up(port) && !port->dead) {
        memcpy(frame->bytes, bytes, length);
        frame->length = MAX(length, SHORTEST);
        frame->source = VPORT_UPLINK;
        forward(port, frame);
    }
    return length;
}
