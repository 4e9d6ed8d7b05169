/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Send and receive queues of Ethernet frames (transobj.c). */
#include "connectx.h"

static void work_queue_destroy(Resource *resource)
{
    ring_free(&((WorkQueue *)resource)->ring);
}

static void ring_setup(WorkQueue *queue, const uint8_t *context)
{
    queue->ring.log_size = GET(context, wq__log_wq_sz);
    queue->ring.stride = 1u << GET(context, wq__log_wq_stride);
    queue->doorbell_record = GET(context, wq__dbr_addr);
    ring_init(&queue->ring, &queue->resource, AT(context, wq__pas), queue->ring.stride << queue->ring.log_size,
              GET(context, wq__log_wq_pg_sz) + 12, GET(context, wq__page_offset));
}

static uint8_t create_sq(Function *function, Command *command)
{
    WorkQueue *queue = resource_new(function, command, 0, sizeof(*queue), work_queue_destroy);
    const uint8_t *context = AT(queue->resource.in, create_sq_in__ctx);

    queue->completion_queue = GET(context, sqc__cqn);
    queue->state = GET(context, sqc__state);
    ring_setup(queue, AT(context, sqc__wq));
    SET(command->out, create_sq_out__sqn, queue->resource.id);
    return STATUS_OK;
}

static uint8_t create_rq(Function *function, Command *command)
{
    WorkQueue *queue = resource_new(function, command, 0, sizeof(*queue), work_queue_destroy);
    const uint8_t *context = AT(queue->resource.in, create_rq_in__ctx);

    queue->completion_queue = GET(context, rqc__cqn);
    queue->state = GET(context, rqc__state);
    ring_setup(queue, AT(context, rqc__wq));
    SET(command->out, create_rq_out__rqn, queue->resource.id);
    return STATUS_OK;
}

/* A queue that returns to reset begins at its first entry again. */
static uint8_t modify(WorkQueue *queue, uint8_t state)
{
    if (!queue) {
        return STATUS_BAD_RESOURCE;
    }
    queue->state = state;
    if (state == 0) {
        queue->consumer = 0;
    }
    return STATUS_OK;
}

static uint8_t modify_sq(Function *function, Command *command)
{
    return modify(resource_find(function, OP_CREATE_SQ, command_id(command)), GET(command->in, modify_sq_in__ctx__state));
}

static uint8_t modify_rq(Function *function, Command *command)
{
    return modify(resource_find(function, OP_CREATE_RQ, command_id(command)), GET(command->in, modify_rq_in__ctx__state));
}

static uint8_t destroy_sq(Function *function, Command *command)
{
    resource_delete(function, OP_CREATE_SQ, command_id(command));
    return STATUS_OK;
}

static uint8_t destroy_rq(Function *function, Command *command)
{
    resource_delete(function, OP_CREATE_RQ, command_id(command));
    return STATUS_OK;
}

static uint8_t query_sq(Function *function, Command *command)
{
    WorkQueue *queue = resource_find(function, OP_CREATE_SQ, command_id(command));

    if (!queue) {
        return STATUS_BAD_RESOURCE;
    }
    SET(command->out, query_sq_out__sq_context__state, queue->state);
    return STATUS_OK;
}

static uint8_t query_rq(Function *function, Command *command)
{
    WorkQueue *queue = resource_find(function, OP_CREATE_RQ, command_id(command));

    if (!queue) {
        return STATUS_BAD_RESOURCE;
    }
    SET(command->out, query_rq_out__rq_context__state, queue->state);
    return STATUS_OK;
}

const CommandEntry work_queue_commands[] = {
    { OP_CREATE_SQ, create_sq },
    { OP_MODIFY_SQ, modify_sq },
    { OP_DESTROY_SQ, destroy_sq },
    { OP_QUERY_SQ, query_sq },
    { OP_CREATE_RQ, create_rq },
    { OP_MODIFY_RQ, modify_rq },
    { OP_DESTROY_RQ, destroy_rq },
    { OP_QUERY_RQ, query_rq },
    { 0, NULL },
};
