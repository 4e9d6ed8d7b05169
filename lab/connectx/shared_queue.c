/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues: the receive buffers of several queue pairs (srq_cmd.c in drivers/infiniband/hw/mlx5 makes them as RMPs). The
 * buffers are a list: the first 16 bytes of each name the next one (struct mlx5_wqe_srq_next_seg in include/linux/mlx5/qp.h).
 */
#include "connectx.h"

#define NEXT_AT 2
#define EVENT_LIMIT_REACHED 0x14

static void shared_queue_destroy(Resource *resource)
{
    ring_free(&((SharedQueue *)resource)->ring);
}

static uint8_t create(Function *function, Command *command)
{
    SharedQueue *queue = resource_new(function, command, 0, sizeof(*queue), shared_queue_destroy);
    const uint8_t *context = AT(AT(queue->resource.in, create_rmp_in__ctx), rmpc__wq);

    queue->ring.log_size = GET(context, wq__log_wq_sz);
    queue->ring.stride = 1u << GET(context, wq__log_wq_stride);
    queue->doorbell_record = GET(context, wq__dbr_addr);
    queue->domain = GET(context, wq__pd);
    queue->limit = GET(context, wq__lwm);
    ring_init(&queue->ring, &queue->resource, AT(context, wq__pas), queue->ring.stride << queue->ring.log_size,
              GET(context, wq__log_wq_pg_sz) + 12, GET(context, wq__page_offset));
    SET(command->out, create_rmp_out__rmpn, queue->resource.id);
    return STATUS_OK;
}

static uint8_t destroy(Function *function, Command *command)
{
    resource_delete(function, OP_CREATE_RMP, command_id(command));
    return STATUS_OK;
}

static SharedQueue *queue_of(Function *function, const Command *command)
{
    return resource_find(function, OP_CREATE_RMP, command_id(command));
}

/* How many buffers are there. */
static uint16_t buffers(Function *function, const SharedQueue *queue)
{
    uint8_t record[4];

    return memory_read(function, queue->doorbell_record, record, 4) ? (uint16_t)(ldl_be_p(record) - queue->taken) : 0;
}

/* Sends the limit event once, when fewer buffers are left than the limit. */
static void look_at_limit(Function *function, SharedQueue *queue)
{
    uint8_t data[28] = { 0 };

    if (queue->limit && buffers(function, queue) < queue->limit) {
        queue->limit = 0;
        stl_be_p(data + 24, queue->resource.id);
        event_send(function, EVENT_LIMIT_REACHED, 0, data);
    }
}

/* The limit is all that can change. */
static uint8_t modify(Function *function, Command *command)
{
    SharedQueue *queue = queue_of(function, command);

    if (!queue) {
        return STATUS_BAD_RESOURCE;
    }
    queue->limit = GET(AT(AT(command->in, modify_rmp_in__ctx), rmpc__wq), wq__lwm);
    look_at_limit(function, queue);
    return STATUS_OK;
}

static uint8_t query(Function *function, Command *command)
{
    SharedQueue *queue = queue_of(function, command);
    uint8_t *context = AT(command->out, query_rmp_out__rmp_context);

    if (!queue) {
        return STATUS_BAD_RESOURCE;
    }
    memcpy(context, AT(queue->resource.in, create_rmp_in__ctx), OFF_rmpc__wq / 8 + OFF_wq__pas / 8);
    SET(AT(context, rmpc__wq), wq__lwm, queue->limit);
    return STATUS_OK;
}

bool shared_queue_is_ready(Function *function, const SharedQueue *queue)
{
    return buffers(function, queue) > 0;
}

/* Reads the next buffer, with the 16 bytes before it. */
bool shared_queue_read(Function *function, const SharedQueue *queue, uint8_t *buffer, uint32_t length)
{
    uint32_t mask = (1u << queue->ring.log_size) - 1;

    return ring_read(function, &queue->ring, (queue->head & mask) * queue->ring.stride, buffer, length);
}

/* Returns the number of the buffer that is used now. */
uint16_t shared_queue_take(Function *function, SharedQueue *queue)
{
    uint8_t header[4] = { 0 };
    uint16_t taken = queue->head;

    shared_queue_read(function, queue, header, sizeof(header));
    queue->head = lduw_be_p(header + NEXT_AT);
    queue->taken++;
    look_at_limit(function, queue);
    return taken;
}

const CommandEntry shared_queue_commands[] = {
    { OP_CREATE_RMP, create },
    { OP_DESTROY_RMP, destroy },
    { OP_MODIFY_RMP, modify },
    { OP_QUERY_RMP, query },
    { 0, NULL },
};
