/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion queues. */
#include "connectx.h"

#define ENTRY 64
#define INDEX_MASK 0xffffff

static void completion_queue_destroy(Resource *resource)
{
    ring_free(&((CompletionQueue *)resource)->ring);
}

static void completion_event(Function *function, CompletionQueue *queue)
{
    EventQueue *events = resource_find(function, OP_CREATE_EQ, queue->event_queue);
    uint8_t data[28] = { 0 };

    queue->armed = false;
    stl_be_p(data + 24, queue->resource.id);
    if (events) {
        event_push(function, events, EVENT_COMPLETION, 0, data);
    }
}

/* The owner bit is written last. An entry of 128 bytes has its 64 bytes at the end (struct mlx5_cqe128). */
void completion_push(Function *function, CompletionQueue *queue, uint8_t entry[64])
{
    uint32_t count = 1u << queue->ring.log_size;
    uint32_t at = (queue->producer & (count - 1)) * queue->ring.stride + queue->ring.stride - ENTRY;

    entry[63] = (entry[63] & 0xf0) | (queue->producer & count ? 1 : 0);
    ring_write(function, &queue->ring, at, entry, ENTRY - 1);
    ring_write(function, &queue->ring, at + ENTRY - 1, entry + ENTRY - 1, 1);
    queue->producer = (queue->producer + 1) & INDEX_MASK;
    if (queue->armed) {
        completion_event(function, queue);
    }
}

/* Doorbell UAR+0x20, 64 bits (mlx5_cq_arm in include/linux/mlx5/cq.h). Entries that the driver has not seen fire at once. */
void completion_queue_arm(Function *function, uint32_t number, uint32_t consumer)
{
    CompletionQueue *queue = resource_find(function, OP_CREATE_CQ, number);

    if (!queue) {
        return;
    }
    queue->armed = true;
    if ((consumer ^ queue->producer) & INDEX_MASK) {
        completion_event(function, queue);
    }
}

static uint8_t create_cq(Function *function, Command *command)
{
    CompletionQueue *queue = resource_new(function, command, 0, sizeof(*queue), completion_queue_destroy);
    uint8_t *context = AT(queue->resource.in, create_cq_in__cq_context);

    queue->ring.log_size = GET(context, cqc__log_cq_size);
    queue->ring.stride = GET(context, cqc__cqe_sz) ? 128 : 64;
    queue->event_queue = GET(context, cqc__c_eqn_or_apu_element);
    ring_init(&queue->ring, &queue->resource, AT(queue->resource.in, create_cq_in__pas),
              queue->ring.stride << queue->ring.log_size, GET(context, cqc__log_page_size) + 12,
              GET(context, cqc__page_offset));
    SET(command->out, create_cq_out__cqn, queue->resource.id);
    return STATUS_OK;
}

static uint8_t destroy_cq(Function *function, Command *command)
{
    resource_delete(function, OP_CREATE_CQ, command_id(command));
    return STATUS_OK;
}

/* Moderation. */
static uint8_t modify_cq(Function *function, Command *command)
{
    return resource_find(function, OP_CREATE_CQ, command_id(command)) ? STATUS_OK : STATUS_BAD_RESOURCE;
}

const CommandEntry completion_queue_commands[] = {
    { OP_CREATE_CQ, create_cq },
    { OP_DESTROY_CQ, destroy_cq },
    { OP_MODIFY_CQ, modify_cq },
    { 0, NULL },
};
