/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flow tables: the commands with which the driver programs the switch and the receive side (fs_cmd.c). */
#include "connectx.h"

static uint64_t root_key(uint8_t type, uint16_t vport)
{
    return (uint64_t)type << 32 | vport;
}

FlowTable *flow_root(Function *function, uint8_t type, uint16_t vport)
{
    uint64_t key = root_key(type, vport);
    uint32_t *id = g_hash_table_lookup(function->roots, &key);

    return id ? resource_find(function, OP_CREATE_FLOW_TABLE, *id) : NULL;
}

static gint by_index(gconstpointer left, gconstpointer right, gpointer unused)
{
    uintptr_t a = (uintptr_t)left, b = (uintptr_t)right;

    (void)unused;
    return a < b ? -1 : a > b;
}

static void flow_table_destroy(Resource *resource)
{
    FlowTable *table = (FlowTable *)resource;

    g_hash_table_destroy(table->groups);
    g_tree_destroy(table->entries);
}

static bool is_acl(const Command *command)
{
    uint8_t type = GET(command->in, create_flow_table_in__table_type);

    return type == TABLE_EGRESS || type == TABLE_INGRESS;
}

static uint8_t create_table(Function *function, Command *command)
{
    FlowTable *table;

    if (is_acl(command)) {
        if (function->port->acls_used >= function->port->acl_tables) {
            return STATUS_LIMIT;
        }
        function->port->acls_used++;
    }
    table = resource_new(function, command, 0, sizeof(*table), flow_table_destroy);
    table->groups = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    table->entries = g_tree_new_full(by_index, NULL, NULL, g_free);
    SET(command->out, create_flow_table_out__table_id, table->resource.id);
    return STATUS_OK;
}

static uint8_t destroy_table(Function *function, Command *command)
{
    uint32_t id = GET(command->in, destroy_flow_table_in__table_id);

    if (!resource_find(function, OP_CREATE_FLOW_TABLE, id)) {
        return STATUS_BAD_RESOURCE;
    }
    if (is_acl(command) && function->port->acls_used) {
        function->port->acls_used--;
    }
    resource_delete(function, OP_CREATE_FLOW_TABLE, id);
    return STATUS_OK;
}

/* Modifier 1 removes the root. */
static uint8_t set_root(Function *function, Command *command)
{
    bool other = GET(command->in, set_flow_table_root_in__other_vport);
    uint16_t vport = other ? GET(command->in, set_flow_table_root_in__vport_number) : 0;
    uint64_t key = root_key(GET(command->in, set_flow_table_root_in__table_type), vport);

    if (command->modifier == 1) {
        g_hash_table_remove(function->roots, &key);
    } else {
        uint32_t id = GET(command->in, set_flow_table_root_in__table_id);

        g_hash_table_replace(function->roots, g_memdup2(&key, sizeof(key)), g_memdup2(&id, sizeof(id)));
    }
    return STATUS_OK;
}

/* All commands below have the table's number at the same place. */
static FlowTable *table_of(Function *function, const Command *command)
{
    return resource_find(function, OP_CREATE_FLOW_TABLE, GET(command->in, set_fte_in__table_id));
}

static uint8_t create_group(Function *function, Command *command)
{
    FlowTable *table = table_of(function, command);
    uint32_t id = ++function->next_id;

    if (!table) {
        return STATUS_BAD_RESOURCE;
    }
    g_hash_table_replace(table->groups, GUINT_TO_POINTER(id),
                         g_memdup2(AT(command->in, create_flow_group_in__match_criteria), FLOW_CRITERIA));
    SET(command->out, create_flow_group_out__group_id, id);
    return STATUS_OK;
}

static uint8_t destroy_group(Function *function, Command *command)
{
    FlowTable *table = table_of(function, command);
    uint32_t id = GET(command->in, destroy_flow_group_in__group_id);

    if (!table || !g_hash_table_remove(table->groups, GUINT_TO_POINTER(id))) {
        return STATUS_BAD_RESOURCE;
    }
    return STATUS_OK;
}

/* The entry is its flow context, with the list of destinations that follows it. */
static uint8_t set_entry(Function *function, Command *command)
{
    FlowTable *table = table_of(function, command);
    uint8_t *context = AT(command->in, set_fte_in__flow_context);

    if (!table) {
        return STATUS_BAD_RESOURCE;
    }
    g_tree_replace(table->entries, GUINT_TO_POINTER((uint32_t)GET(command->in, set_fte_in__flow_index)),
                   g_memdup2(context, command->in + command->in_length - context));
    return STATUS_OK;
}

static uint8_t delete_entry(Function *function, Command *command)
{
    FlowTable *table = table_of(function, command);

    if (!table || !g_tree_remove(table->entries, GUINT_TO_POINTER((uint32_t)GET(command->in, delete_fte_in__flow_index)))) {
        return STATUS_BAD_RESOURCE;
    }
    return STATUS_OK;
}

/* Changes which table follows. */
static uint8_t modify_table(Function *function, Command *command)
{
    FlowTable *table = table_of(function, command);
    uint8_t *wanted = AT(command->in, modify_flow_table_in__flow_table_context), *context;

    if (!table) {
        return STATUS_BAD_RESOURCE;
    }
    context = AT(table->resource.in, create_flow_table_in__flow_table_context);
    SET(context, flow_table_context__table_miss_action, GET(wanted, flow_table_context__table_miss_action));
    SET(context, flow_table_context__table_miss_id, GET(wanted, flow_table_context__table_miss_id));
    return STATUS_OK;
}

const CommandEntry flow_table_commands[] = {
    { OP_CREATE_FLOW_TABLE, create_table },
    { OP_DESTROY_FLOW_TABLE, destroy_table },
    { OP_MODIFY_FLOW_TABLE, modify_table },
    { OP_SET_FLOW_TABLE_ROOT, set_root },
    { OP_CREATE_FLOW_GROUP, create_group },
    { OP_DESTROY_FLOW_GROUP, destroy_group },
    { OP_SET_FLOW_TABLE_ENTRY, set_entry },
    { OP_DELETE_FLOW_TABLE_ENTRY, delete_entry },
    { 0, NULL },
};
