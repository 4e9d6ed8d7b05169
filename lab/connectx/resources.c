/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The firmware's objects by kind and number, and the objects of which a number is all that the drivers need. */
#include "connectx.h"

static uint64_t key_of(uint32_t kind, uint32_t id)
{
    return (uint64_t)kind << 32 | id;
}

void resource_free(void *opaque)
{
    Resource *resource = opaque;

    if (resource->destroy) {
        resource->destroy(resource);
    }
    g_free(resource->in);
    g_free(resource);
}

/* An ID of 0 asks for the next free one. */
void *resource_new(Function *function, Command *command, uint32_t id, size_t size, void (*destroy)(Resource *))
{
    Resource *resource = g_malloc0(size);
    uint64_t *key = g_new(uint64_t, 1);

    resource->kind = command->opcode;
    resource->id = function->forced_id ? function->forced_id : id ? id : ++function->next_id;
    resource->in_length = command->in_length;
    resource->in = g_memdup2(command->in, command->in_length);
    resource->destroy = destroy;
    *key = key_of(resource->kind, resource->id);
    g_hash_table_replace(function->resources, key, resource);
    return resource;
}

void *resource_find(Function *function, uint32_t kind, uint32_t id)
{
    uint64_t key = key_of(kind, id);

    return g_hash_table_lookup(function->resources, &key);
}

void resource_delete(Function *function, uint32_t kind, uint32_t id)
{
    uint64_t key = key_of(kind, id);

    g_hash_table_remove(function->resources, &key);
}

/* Nearly all commands have the number of their object in the lower 24 bits of the third double word. */
uint32_t command_id(const Command *command)
{
    return ldl_be_p(command->in + 8) & 0xffffff;
}

static uint8_t create(Function *function, Command *command)
{
    Resource *resource = resource_new(function, command, 0, sizeof(Resource), NULL);

    stl_be_p(command->out + 8, resource->id);
    return STATUS_OK;
}

static uint8_t create_scheduling_element(Function *function, Command *command)
{
    Resource *resource = resource_new(function, command, 0, sizeof(Resource), NULL);

    SET(command->out, create_scheduling_element_out__scheduling_element_id, resource->id);
    return STATUS_OK;
}

static uint8_t destroy_scheduling_element(Function *function, Command *command)
{
    resource_delete(function, OP_CREATE_SCHEDULING_ELEMENT,
                    GET(command->in, destroy_scheduling_element_in__scheduling_element_id));
    return STATUS_OK;
}

/* Objects of which the drivers need a number, and what they are created with, and nothing else. */
static const struct {
    uint16_t create, destroy;
} numbered[] = {
    { OP_ALLOC_PD, OP_DEALLOC_PD },
    { OP_ALLOC_TRANSPORT_DOMAIN, OP_DEALLOC_TRANSPORT_DOMAIN },
    { OP_ALLOC_XRCD, OP_DEALLOC_XRCD },
    { OP_CREATE_TIR, OP_DESTROY_TIR },
    { OP_CREATE_TIS, OP_DESTROY_TIS },
    { OP_CREATE_RQT, OP_DESTROY_RQT },
    { OP_CREATE_SRQ, OP_DESTROY_SRQ },
    { OP_CREATE_XRC_SRQ, OP_DESTROY_XRC_SRQ },
    { OP_ALLOC_FLOW_COUNTER, OP_DEALLOC_FLOW_COUNTER },
    { OP_ALLOC_PACKET_REFORMAT_CONTEXT, OP_DEALLOC_PACKET_REFORMAT_CONTEXT },
    { OP_ALLOC_MODIFY_HEADER_CONTEXT, OP_DEALLOC_MODIFY_HEADER_CONTEXT },
};

static uint8_t destroy(Function *function, Command *command)
{
    for (size_t i = 0; i < ARRAY_SIZE(numbered); i++) {
        if (numbered[i].destroy == command->opcode) {
            resource_delete(function, numbered[i].create, command_id(command));
        }
    }
    return STATUS_OK;
}

static uint8_t modify_rqt(Function *function, Command *command)
{
    Resource *table = resource_find(function, OP_CREATE_RQT, command_id(command));
    uint8_t *from = AT(command->in, modify_rqt_in__ctx), *to;

    if (!table) {
        return STATUS_BAD_RESOURCE;
    }
    to = AT(table->in, create_rqt_in__rqt_context);
    memcpy(to, from, MIN(command->in + command->in_length - from, table->in + table->in_length - to));
    return STATUS_OK;
}

const CommandEntry resource_commands[] = {
    { OP_ALLOC_PD, create },
    { OP_DEALLOC_PD, destroy },
    { OP_ALLOC_TRANSPORT_DOMAIN, create },
    { OP_DEALLOC_TRANSPORT_DOMAIN, destroy },
    { OP_ALLOC_XRCD, create },
    { OP_DEALLOC_XRCD, destroy },
    { OP_CREATE_TIR, create },
    { OP_DESTROY_TIR, destroy },
    { OP_CREATE_TIS, create },
    { OP_DESTROY_TIS, destroy },
    { OP_CREATE_RQT, create },
    { OP_DESTROY_RQT, destroy },
    { OP_CREATE_SRQ, create },
    { OP_DESTROY_SRQ, destroy },
    { OP_CREATE_XRC_SRQ, create },
    { OP_DESTROY_XRC_SRQ, destroy },
    { OP_ALLOC_FLOW_COUNTER, create },
    { OP_DEALLOC_FLOW_COUNTER, destroy },
    { OP_ALLOC_PACKET_REFORMAT_CONTEXT, create },
    { OP_DEALLOC_PACKET_REFORMAT_CONTEXT, destroy },
    { OP_ALLOC_MODIFY_HEADER_CONTEXT, create },
    { OP_DEALLOC_MODIFY_HEADER_CONTEXT, destroy },
    { OP_CREATE_GENERAL_OBJECT, create },
    { OP_CREATE_SCHEDULING_ELEMENT, create_scheduling_element },
    { OP_DESTROY_SCHEDULING_ELEMENT, destroy_scheduling_element },
    { OP_MODIFY_RQT, modify_rqt },
    { OP_MODIFY_SCHEDULING_ELEMENT, command_accept },
    { OP_SET_MONITOR_COUNTER, command_accept },
    { OP_QUERY_VNIC_ENV, command_accept },
    { OP_MODIFY_TIR, command_accept },
    { OP_MODIFY_TIS, command_accept },
    { OP_QUERY_SRQ, command_accept },
    { OP_ARM_RQ, command_accept },
    { OP_QUERY_XRC_SRQ, command_accept },
    { OP_ARM_XRC_SRQ, command_accept },
    { OP_QUERY_FLOW_COUNTER, command_accept },
    { OP_SET_L2_TABLE_ENTRY, command_accept },
    { OP_DELETE_L2_TABLE_ENTRY, command_accept },
    { OP_QUERY_CONG_STATUS, command_accept },
    { OP_QUERY_CONG_PARAMS, command_accept },
    { OP_QUERY_CONG_STATISTICS, command_accept },
    { 0, NULL },
};
