/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The NIC vport context: MAC, allowed addresses, promiscuous mode, GUIDs, MTU, and the event that tells the PF of a change. */
#include "connectx.h"

enum { CHANGED_UNICAST = 1, CHANGED_MULTICAST = 2, CHANGED_PROMISCUOUS = 8 };
#define ENTRY 8 /* an address in a list: two unused bytes, then the MAC */
#define SELECTED(field) GET(command->in, modify_nic_vport_context_in__field_select__##field)

/*
 * The PF's driver arms the event; it fires once, with the number of the vport (esw_vport_change_handler in eswitch.c). A change
 * while it is not armed fires when the driver arms it again: the driver may have read the context before the change.
 */
static void report_change(Port *port, uint16_t number, uint8_t changed)
{
    Vport *vport = &port->vport[number];
    uint8_t data[28] = { 0 };

    vport->unreported |= changed;
    if (!vport->change_event_armed || !(vport->change_events & vport->unreported)) {
        return;
    }
    vport->change_event_armed = false;
    vport->unreported = 0;
    stw_be_p(data + 2, number);
    event_send(&port->function, EVENT_VPORT, 0, data);
}

/* All of a context has changed, by something other than the VF's driver. */
void vport_context_changed(Port *port, uint16_t number)
{
    report_change(port, number, CHANGED_UNICAST | CHANGED_MULTICAST | CHANGED_PROMISCUOUS);
}

/* The list follows the context. */
static uint8_t *list_of(uint8_t *context)
{
    return AT(context, nic_vport_context__permanent_address) + 12;
}

static void list_write(const Vport *vport, uint8_t *context, unsigned type, const uint8_t *end)
{
    uint8_t *entry = list_of(context);

    SET(context, nic_vport_context__allowed_list_type, type);
    SET(context, nic_vport_context__allowed_list_size, vport->addresses[type]);
    for (unsigned i = 0; i < vport->addresses[type] && entry + ENTRY <= end; i++, entry += ENTRY) {
        memcpy(entry + 2, vport->address[type][i], 6);
    }
}

static void list_read(Vport *vport, uint8_t *context, const uint8_t *end)
{
    unsigned type = GET(context, nic_vport_context__allowed_list_type);
    unsigned count = GET(context, nic_vport_context__allowed_list_size);
    uint8_t *entry = list_of(context);

    if (type >= 2 || count > MAX_ADDRESSES) {
        return;
    }
    vport->addresses[type] = 0;
    for (; vport->addresses[type] < count && entry + ENTRY <= end; entry += ENTRY) {
        memcpy(vport->address[type][vport->addresses[type]++], entry + 2, 6);
    }
}

static uint8_t query(Function *function, Command *command)
{
    int number = vport_of(function, command);
    uint8_t *context = AT(command->out, query_nic_vport_context_out__nic_vport_context);
    unsigned type = GET(command->in, query_nic_vport_context_in__allowed_list_type);
    const Vport *vport;

    if (number < 0) {
        return STATUS_BAD_PARAMETER;
    }
    vport = &function->port->vport[number];
    SET(context, nic_vport_context__min_wqe_inline_mode, vport->min_inline);
    SET(context, nic_vport_context__disable_uc_local_lb, vport->disabled_loopback & 1);
    SET(context, nic_vport_context__disable_mc_local_lb, vport->disabled_loopback >> 1 & 1);
    SET(context, nic_vport_context__roce_en, vport->roce);
    SET(context, nic_vport_context__mtu, vport->mtu);
    SET(context, nic_vport_context__system_image_guid, function->port->card_guid);
    SET(context, nic_vport_context__port_guid, vport->port_guid);
    SET(context, nic_vport_context__node_guid, vport->node_guid);
    SET(context, nic_vport_context__promisc_uc, vport->promiscuous_unicast);
    SET(context, nic_vport_context__promisc_mc, vport->promiscuous_multicast);
    SET(context, nic_vport_context__promisc_all, vport->promiscuous_all);
    memcpy(AT(context, nic_vport_context__permanent_address) + 2, vport->mac, 6);
    if (type < 2) {
        list_write(vport, context, type, command->out + command->out_length);
    }
    return STATUS_OK;
}

static void modify_identity(Vport *vport, const Command *command, const uint8_t *context)
{
    if (SELECTED(node_guid)) {
        vport->node_guid = GET(context, nic_vport_context__node_guid);
    }
    if (SELECTED(port_guid)) {
        vport->port_guid = GET(context, nic_vport_context__port_guid);
    }
    if (SELECTED(permanent_address)) {
        memcpy(vport->mac, AT(context, nic_vport_context__permanent_address) + 2, 6);
    }
}

static void modify_traffic(Vport *vport, const Command *command, const uint8_t *context)
{
    if (SELECTED(mtu)) {
        vport->mtu = GET(context, nic_vport_context__mtu);
    }
    if (SELECTED(min_inline)) {
        vport->min_inline = GET(context, nic_vport_context__min_wqe_inline_mode);
    }
    if (SELECTED(disable_uc_local_lb)) {
        vport->disabled_loopback = (vport->disabled_loopback & 2) | GET(context, nic_vport_context__disable_uc_local_lb);
    }
    if (SELECTED(disable_mc_local_lb)) {
        vport->disabled_loopback = (vport->disabled_loopback & 1) | GET(context, nic_vport_context__disable_mc_local_lb) << 1;
    }
    if (SELECTED(roce_en)) {
        vport->roce = GET(context, nic_vport_context__roce_en);
    }
}

static uint8_t modify_addresses(Vport *vport, const Command *command, uint8_t *context)
{
    uint8_t changed = 0;

    if (SELECTED(promisc)) {
        vport->promiscuous_unicast = GET(context, nic_vport_context__promisc_uc);
        vport->promiscuous_multicast = GET(context, nic_vport_context__promisc_mc);
        vport->promiscuous_all = GET(context, nic_vport_context__promisc_all);
        changed |= CHANGED_PROMISCUOUS;
    }
    if (SELECTED(addresses_list)) {
        list_read(vport, context, command->in + command->in_length);
        changed |= GET(context, nic_vport_context__allowed_list_type) ? CHANGED_MULTICAST : CHANGED_UNICAST;
    }
    return changed;
}

static void modify_event(Vport *vport, const Command *command, const uint8_t *context)
{
    if (SELECTED(change_event)) {
        vport->change_event_armed = GET(context, nic_vport_context__arm_change_event);
        vport->change_events = GET(context, nic_vport_context__event_on_uc_address_change) * CHANGED_UNICAST |
                               GET(context, nic_vport_context__event_on_mc_address_change) * CHANGED_MULTICAST |
                               GET(context, nic_vport_context__event_on_promisc_change) * CHANGED_PROMISCUOUS;
    }
}

static uint8_t modify(Function *function, Command *command)
{
    int number = vport_of(function, command);
    uint8_t *context = AT(command->in, modify_nic_vport_context_in__nic_vport_context), changed;
    Vport *vport;

    if (number < 0) {
        return STATUS_BAD_PARAMETER;
    }
    if (command->in_length < OFF_modify_nic_vport_context_in__nic_vport_context / 8 + 0x100) {
        return STATUS_BAD_INPUT_LENGTH;
    }
    vport = &function->port->vport[number];
    modify_identity(vport, command, context);
    modify_traffic(vport, command, context);
    changed = modify_addresses(vport, command, context);
    modify_event(vport, command, context);
    report_change(function->port, number, changed);
    return STATUS_OK;
}

const CommandEntry vport_context_commands[] = {
    { OP_QUERY_NIC_VPORT_CONTEXT, query },
    { OP_MODIFY_NIC_VPORT_CONTEXT, modify },
    { 0, NULL },
};
