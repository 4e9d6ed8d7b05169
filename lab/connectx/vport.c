/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Vports: link state, the switch's VLAN settings, counters, RoCE addresses (vport.c, eswitch.c). */
#include "connectx.h"

enum { MODIFIER_VNIC = 0, MODIFIER_ESWITCH = 1, MODIFIER_UPLINK = 2 };
enum { LINK_DOWN = 1, LINK_UP = 4, LINK_INITIALIZED = 5 }; /* subtypes of a port event */
enum { ADMIN_UP = 1, ADMIN_AUTO = 2 };

bool uplink_is_up(Port *port)
{
    return port->admin_state == ADMIN_UP && port->cable;
}

bool vport_is_up(Port *port, uint16_t number)
{
    uint8_t state = port->vport[number].admin_state;

    return number == 0 || state == ADMIN_AUTO ? uplink_is_up(port) : state == ADMIN_UP;
}

static uint8_t link_event(Port *port, uint16_t number)
{
    if (!port->infiniband) {
        return vport_is_up(port, number) ? LINK_UP : LINK_DOWN;
    }
    switch (infiniband_state(port, number)) {
    case PORT_ACTIVE:
        return LINK_UP;
    case PORT_INIT:
        return LINK_INITIALIZED;
    default:
        return LINK_DOWN;
    }
}

void vport_link_event(Port *port, uint16_t number)
{
    Function *function = function_of_vport(port, number);
    uint8_t data[28] = { 0 };

    data[8] = 1 << 4; /* port 1 */
    if (function) {
        event_send(function, EVENT_PORT, link_event(port, number), data);
    }
}

void port_link_changed(Port *port)
{
    for (unsigned number = 0; number <= port->vfs; number++) {
        vport_link_event(port, number);
    }
}

/* The vport that a command means: the function's own, or with other_vport any for the PF. -1 if it may not. */
int vport_of(Function *function, const Command *command)
{
    uint16_t number = GET(command->in, query_vport_state_in__vport_number);

    if (!GET(command->in, query_vport_state_in__other_vport)) {
        return function->vport;
    }
    if (function->vport == 0 ? number <= function->port->vfs : number == function->vport) {
        return number;
    }
    return -1;
}

static uint8_t query_state(Function *function, Command *command)
{
    Port *port = function->port;
    int number = vport_of(function, command);

    if (number < 0) {
        return STATUS_BAD_PARAMETER;
    }
    if (command->modifier == MODIFIER_UPLINK) {
        SET(command->out, query_vport_state_out__admin_state, port->admin_state == ADMIN_UP);
        SET(command->out, query_vport_state_out__state, uplink_is_up(port));
    } else {
        SET(command->out, query_vport_state_out__admin_state, number ? port->vport[number].admin_state : ADMIN_UP);
        SET(command->out, query_vport_state_out__state, vport_is_up(port, number));
    }
    return STATUS_OK;
}

static uint8_t modify_state(Function *function, Command *command)
{
    int number = vport_of(function, command);

    if (number < 0) {
        return STATUS_BAD_PARAMETER;
    }
    if (command->modifier == MODIFIER_ESWITCH && number > 0) {
        function->port->vport[number].admin_state = GET(command->in, modify_vport_state_in__admin_state);
        vport_link_event(function->port, number);
    }
    return STATUS_OK;
}

static uint8_t query_switch_context(Function *function, Command *command)
{
    int number = vport_of(function, command);
    Vport *vport;

    if (number < 0 || function->vport) {
        return STATUS_BAD_PARAMETER;
    }
    vport = &function->port->vport[number];
    memcpy(AT(command->out, query_esw_vport_context_out__esw_vport_context), vport->switch_context,
           sizeof(vport->switch_context));
    return STATUS_OK;
}

/* VLAN stripping and insertion: virtual switch tagging. */
static uint8_t modify_switch_context(Function *function, Command *command)
{
    uint8_t *wanted = AT(command->in, modify_esw_vport_context_in__esw_vport_context), *context;
    int number = vport_of(function, command);

    if (number < 0 || function->vport) {
        return STATUS_BAD_PARAMETER;
    }
    context = function->port->vport[number].switch_context;
    if (GET(command->in, modify_esw_vport_context_in__field_select__vport_cvlan_strip)) {
        SET(context, esw_vport_context__vport_cvlan_strip, GET(wanted, esw_vport_context__vport_cvlan_strip));
    }
    if (GET(command->in, modify_esw_vport_context_in__field_select__vport_cvlan_insert)) {
        SET(context, esw_vport_context__vport_cvlan_insert, GET(wanted, esw_vport_context__vport_cvlan_insert));
        SET(context, esw_vport_context__cvlan_pcp, GET(wanted, esw_vport_context__cvlan_pcp));
        SET(context, esw_vport_context__cvlan_id, GET(wanted, esw_vport_context__cvlan_id));
    }
    return STATUS_OK;
}

static void count(Vport *vport, bool sent, int kind, uint32_t length)
{
    uint64_t *counters = sent ? vport->sent : vport->received;

    if (!vport->frozen) {
        counters[2 * kind]++;
        counters[2 * kind + 1] += length;
    }
}

/* RDMA has counters of its own, also on Ethernet: it has no destination here. */
void vport_count(Port *port, uint16_t number, bool sent, const uint8_t *destination, uint32_t length)
{
    static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    int kind = !destination ? 3 : !(destination[0] & 1) ? 0 : memcmp(destination, broadcast, 6) ? 1 : 2;

    count(&port->vport[number], sent, kind, length);
}

void vport_count_infiniband(Port *port, uint16_t number, bool sent, uint16_t lid, uint32_t length)
{
    count(&port->vport[number], sent, lid >= FIRST_MULTICAST_LID ? 4 : 3, length);
}

/* Each counter is a pair of 64 bits: packets, octets. */
static uint8_t query_counter(Function *function, Command *command)
{
    int number = vport_of(function, command);
    uint8_t *out = command->out;
    uint8_t *received[COUNTERS / 2] = { AT(out, query_vport_counter_out__received_eth_unicast),
                                        AT(out, query_vport_counter_out__received_eth_multicast),
                                        AT(out, query_vport_counter_out__received_eth_broadcast),
                                        AT(out, query_vport_counter_out__received_ib_unicast),
                                        AT(out, query_vport_counter_out__received_ib_multicast) };
    uint8_t *sent[COUNTERS / 2] = { AT(out, query_vport_counter_out__transmitted_eth_unicast),
                                    AT(out, query_vport_counter_out__transmitted_eth_multicast),
                                    AT(out, query_vport_counter_out__transmitted_eth_broadcast),
                                    AT(out, query_vport_counter_out__transmitted_ib_unicast),
                                    AT(out, query_vport_counter_out__transmitted_ib_multicast) };

    if (number < 0) {
        return STATUS_BAD_PARAMETER;
    }
    for (int i = 0; i < COUNTERS; i++) {
        stq_be_p(received[i / 2] + i % 2 * 8, function->port->vport[number].received[i]);
        stq_be_p(sent[i / 2] + i % 2 * 8, function->port->vport[number].sent[i]);
    }
    return STATUS_OK;
}

/* A RoCE address of a function; both commands have it 16 bytes after their start. */
static uint8_t roce_address(Function *function, Command *command)
{
    uint16_t index = GET(command->in, set_roce_address_in__roce_address_index);

    if (index >= GIDS) {
        return STATUS_BAD_PARAMETER;
    }
    if (command->opcode == OP_SET_ROCE_ADDRESS) {
        memcpy(function->gid[index], AT(command->in, set_roce_address_in__roce_address), sizeof(function->gid[index]));
    } else {
        memcpy(AT(command->out, query_roce_address_out__roce_address), function->gid[index], sizeof(function->gid[index]));
    }
    return STATUS_OK;
}

const CommandEntry vport_commands[] = {
    { OP_QUERY_VPORT_STATE, query_state },
    { OP_MODIFY_VPORT_STATE, modify_state },
    { OP_QUERY_ESW_VPORT_CONTEXT, query_switch_context },
    { OP_MODIFY_ESW_VPORT_CONTEXT, modify_switch_context },
    { OP_QUERY_VPORT_COUNTER, query_counter },
    { OP_QUERY_ROCE_ADDRESS, roce_address },
    { OP_SET_ROCE_ADDRESS, roce_address },
    { 0, NULL },
};
