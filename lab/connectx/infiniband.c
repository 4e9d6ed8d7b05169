/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HCA vport context of InfiniBand: GUIDs, policy and state, GIDs and partition keys (ib_virt.c in drivers/infiniband/hw/mlx5). */
#include "connectx.h"

enum { PHYSICAL_DISABLED = 3, PHYSICAL_UP = 5 };
enum { POLICY_UP = 1, POLICY_FOLLOW = 2 };
enum { SELECT_PORT_GUID = 1, SELECT_NODE_GUID = 2, SELECT_POLICY = 4 };
#define CAPABILITY_MASK 0x2650e848
#define HAS_CM 0x10000 /* IB_PORT_CM_SUP */
#define WHOLE_TABLE 0xffff

static bool is_up(Port *port, unsigned number)
{
    uint8_t policy = port->vport[number].policy;

    return number == 0 ? uplink_is_up(port) : policy == POLICY_UP || (policy == POLICY_FOLLOW && uplink_is_up(port));
}

/* A subnet manager moves the card's port from INIT to ACTIVE, then the virtual ports (virt_enabled of opensm) in its list. */
unsigned infiniband_state(Port *port, uint16_t number)
{
    if (!is_up(port, number) || (number && !(port->subnet_manager && subnet_list_has(port, number)))) {
        return PORT_DOWN;
    }
    return port->subnet_manager ? PORT_ACTIVE : PORT_INIT;
}

/*
 * No packets of a subnet manager are answered: its LID and those of the ports are the model's. ib_cm gives up a port whose driver cannot
 * announce it (cm_add_one).
 */
static uint8_t query(Function *function, Command *command)
{
    Port *port = function->port;
    int number = vport_of(function, command);
    uint8_t *context = AT(command->out, query_hca_vport_context_out__hca_vport_context);
    bool active;

    if (number < 0) {
        return STATUS_BAD_PARAMETER;
    }
    active = infiniband_state(port, number) == PORT_ACTIVE;
    SET(context, hca_vport_context__has_smi, number == 0);
    SET(context, hca_vport_context__has_raw, 1);
    SET(context, hca_vport_context__sm_virt_aware, 1);
    SET(context, hca_vport_context__port_physical_state, uplink_is_up(port) ? PHYSICAL_UP : PHYSICAL_DISABLED);
    SET(context, hca_vport_context__vport_state_policy, port->vport[number].policy);
    SET(context, hca_vport_context__port_state, infiniband_state(port, 0));
    SET(context, hca_vport_context__vport_state, infiniband_state(port, number));
    SET(context, hca_vport_context__system_image_guid, port->card_guid);
    SET(context, hca_vport_context__port_guid, port->vport[number].port_guid);
    SET(context, hca_vport_context__node_guid, port->vport[number].node_guid);
    SET(context, hca_vport_context__cap_mask1, CAPABILITY_MASK | (port->vport[number].has_cm ? HAS_CM : 0));
    SET(context, hca_vport_context__cap_mask1_field_select, HAS_CM);
    SET(context, hca_vport_context__lid, active ? 1 + number : 0);
    SET(context, hca_vport_context__sm_lid, active ? MANAGER_LID : 0);
    SET(context, hca_vport_context__subnet_timeout, 18);
    return STATUS_OK;
}

/* The PF may set all of each port, a VF only what it can do. */
static uint8_t modify(Function *function, Command *command)
{
    int number = vport_of(function, command);
    uint8_t *context = AT(command->in, modify_hca_vport_context_in__hca_vport_context);
    uint32_t selected = GET(context, hca_vport_context__field_select);
    Vport *vport;

    if (number < 0 || (function->vport && selected)) {
        return STATUS_BAD_PARAMETER;
    }
    vport = &function->port->vport[number];
    if (GET(context, hca_vport_context__cap_mask1_field_select) & HAS_CM) {
        vport->has_cm = GET(context, hca_vport_context__cap_mask1) & HAS_CM;
    }
    if (selected & SELECT_PORT_GUID) {
        vport->port_guid = GET(context, hca_vport_context__port_guid);
        if (function->port->listed) {
            vport_link_event(function->port, number);
        }
    }
    if (selected & SELECT_NODE_GUID) {
        vport->node_guid = GET(context, hca_vport_context__node_guid);
    }
    if (selected & SELECT_POLICY) {
        vport->policy = GET(context, hca_vport_context__vport_state_policy);
        vport_link_event(function->port, number);
    }
    return STATUS_OK;
}

/* One GID for each port: the default prefix and the port's GUID. */
static uint8_t query_gid(Function *function, Command *command)
{
    int number = vport_of(function, command);
    uint8_t *gid = command->out + 16;

    if (number < 0) {
        return STATUS_BAD_PARAMETER;
    }
    if (GET(command->in, query_hca_vport_gid_in__gid_index) == 0) {
        SET(command->out, query_hca_vport_gid_out__gids_num, 1);
        stq_be_p(gid, SUBNET_PREFIX);
        stq_be_p(gid + 8, function->port->vport[number].port_guid);
    }
    return STATUS_OK;
}

/* One key, or all. */
static uint8_t query_pkey(Function *function, Command *command)
{
    uint16_t index = GET(command->in, query_hca_vport_pkey_in__pkey_index), first = index == WHOLE_TABLE ? 0 : index;
    int number = vport_of(function, command);

    if (number < 0) {
        return STATUS_BAD_PARAMETER;
    }
    for (uint32_t i = 0; i < PARTITION_KEYS && 16 + 4 * i + 4 <= command->out_length; i++) {
        stl_be_p(command->out + 16 + 4 * i, subnet_list_key(function->port, number, first + i));
    }
    return STATUS_OK;
}

const CommandEntry infiniband_commands[] = {
    { OP_QUERY_HCA_VPORT_CONTEXT, query },
    { OP_MODIFY_HCA_VPORT_CONTEXT, modify },
    { OP_QUERY_HCA_VPORT_GID, query_gid },
    { OP_QUERY_HCA_VPORT_PKEY, query_pkey },
    { 0, NULL },
};
