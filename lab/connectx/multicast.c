/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs that are attached to multicast groups. Two things decide who gets a datagram to a group: which ports have joined it at the
 * subnet administrator, and which queue pairs of such a port are attached to its GID.
 */
#include "connectx.h"

#define KEY 8 /* the number of the queue pair, an unused word, the GID */
#define KEY_BYTES 24
#define GROUP 24 /* the destination in the network header */

static Resource *attachment(Function *function, const Command *command)
{
    GHashTableIter iterator;
    Resource *resource;

    g_hash_table_iter_init(&iterator, function->resources);
    while (g_hash_table_iter_next(&iterator, NULL, (void **)&resource)) {
        if (resource->kind == OP_ATTACH_TO_MCG && !memcmp(resource->in + KEY, command->in + KEY, KEY_BYTES)) {
            return resource;
        }
    }
    return NULL;
}

static uint8_t attach(Function *function, Command *command)
{
    if (command->in_length < KEY + KEY_BYTES) {
        return STATUS_BAD_INPUT_LENGTH;
    }
    if (!attachment(function, command)) {
        resource_new(function, command, 0, sizeof(Resource), NULL);
    }
    return STATUS_OK;
}

static uint8_t detach(Function *function, Command *command)
{
    Resource *resource = command->in_length < KEY + KEY_BYTES ? NULL : attachment(function, command);

    if (!resource) {
        return STATUS_BAD_RESOURCE;
    }
    resource_delete(function, OP_ATTACH_TO_MCG, resource->id);
    return STATUS_OK;
}

/* A queue pair may ask not to get its own datagrams. */
static bool is_own(const Function *receiver, const Function *sender, const QueuePair *pair, const RdmaPacket *packet)
{
    return receiver == sender && (ldl_be_p(packet->bytes + PACKET_HEADER + 4) & 0xffffff) == pair->resource.id &&
           GET(AT(pair->resource.in, create_qp_in__qpc), qpc__block_lb_mc);
}

/* To all queue pairs of a function that are attached to the packet's group. */
void multicast_receive(Function *function, const Function *sender, const RdmaPacket *packet)
{
    GHashTableIter iterator;
    Resource *resource;

    g_hash_table_iter_init(&iterator, function->resources);
    while (g_hash_table_iter_next(&iterator, NULL, (void **)&resource)) {
        QueuePair *pair;

        if (resource->kind != OP_ATTACH_TO_MCG ||
            memcmp(AT(resource->in, attach_to_mcg_in__multicast_gid), packet->header + GROUP, 16)) {
            continue;
        }
        pair = resource_find(function, OP_CREATE_QP, GET(resource->in, attach_to_mcg_in__qpn));
        if (pair && pair->service == SERVICE_DATAGRAM && (pair->state == QP_RTR || pair->state == QP_RTS) &&
            !is_own(function, sender, pair, packet)) {
            datagram_receive(function, pair, packet);
        }
    }
}

const CommandEntry multicast_commands[] = {
    { OP_ATTACH_TO_MCG, attach },
    { OP_DETACH_FROM_MCG, detach },
    { 0, NULL },
};
