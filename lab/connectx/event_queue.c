/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event queues: how the firmware tells the driver about completions, commands, links, vports and pages. */
#include "connectx.h"

#define ENTRY 64
#define INDEX_MASK 0xffffff

static void event_queue_destroy(Resource *resource)
{
    ring_free(&((EventQueue *)resource)->ring);
}

static void event_queue_interrupt(Function *function, EventQueue *queue)
{
    queue->armed = false;
    msix_notify(&function->device, queue->vector);
}

/* The owner byte is written last: the driver polls it (next_eqe_sw in eq.c). */
void event_push(Function *function, EventQueue *queue, uint8_t type, uint8_t subtype, const uint8_t data[28])
{
    uint8_t entry[ENTRY] = { 0 };
    uint32_t count = 1u << queue->ring.log_size, at = (queue->producer & (count - 1)) * ENTRY;

    entry[1] = type;
    entry[3] = subtype;
    memcpy(entry + 32, data, 28);
    entry[63] = queue->producer & count ? 1 : 0;
    ring_write(function, &queue->ring, at, entry, ENTRY - 1);
    ring_write(function, &queue->ring, at + ENTRY - 1, entry + ENTRY - 1, 1);
    queue->producer = (queue->producer + 1) & INDEX_MASK;
    if (queue->armed) {
        event_queue_interrupt(function, queue);
    }
}

EventQueue *event_queue_for(Function *function, uint8_t type)
{
    GHashTableIter iterator;
    Resource *resource;

    g_hash_table_iter_init(&iterator, function->resources);
    while (g_hash_table_iter_next(&iterator, NULL, (void **)&resource)) {
        EventQueue *queue = (EventQueue *)resource;

        if (resource->kind == OP_CREATE_EQ && (queue->events >> type & 1)) {
            return queue;
        }
    }
    return NULL;
}

void event_send(Function *function, uint8_t type, uint8_t subtype, const uint8_t data[28])
{
    EventQueue *queue = migration_receives(function) ? event_queue_for(function, type) : NULL;

    if (queue) {
        event_push(function, queue, type, subtype, data);
    }
}

/*
 * Doorbells of an event queue in a UAR: +0x40 updates the consumer's index and arms, +0x48 only updates (eq_update_ci in
 * lib/eq.h). A queue that is armed while it has entries must interrupt at once, or the driver waits for ever.
 */
void event_queue_doorbell(Function *function, uint32_t value, bool arm)
{
    EventQueue *queue = resource_find(function, OP_CREATE_EQ, value >> 24);

    if (!queue) {
        return;
    }
    queue->consumer = value & INDEX_MASK;
    if (!arm) {
        return;
    }
    queue->armed = true;
    if (queue->consumer != queue->producer) {
        event_queue_interrupt(function, queue);
    }
}

/* The interrupt of an event that the driver has not seen may be lost when the function moves to another card. */
void event_queue_look_again(Function *function, EventQueue *queue)
{
    if (queue->consumer != queue->producer) {
        event_queue_interrupt(function, queue);
    }
}

/* The number has 8 bits in the doorbell, so it does not come from the function's other numbers. */
static uint8_t create_eq(Function *function, Command *command)
{
    uint32_t id = 1;
    EventQueue *queue;
    uint8_t *context;

    while (id < 200 && resource_find(function, OP_CREATE_EQ, id)) {
        id++;
    }
    if (id == 200) {
        return STATUS_NO_RESOURCES;
    }
    queue = resource_new(function, command, id, sizeof(*queue), event_queue_destroy);
    context = AT(queue->resource.in, create_eq_in__eq_context_entry);
    queue->ring.log_size = GET(context, eqc__log_eq_size);
    queue->vector = GET(context, eqc__intr);
    queue->events = ldq_be_p(AT(queue->resource.in, create_eq_in__event_bitmask));
    ring_init(&queue->ring, &queue->resource, AT(queue->resource.in, create_eq_in__pas), ENTRY << queue->ring.log_size,
              GET(context, eqc__log_page_size) + 12, GET(context, eqc__page_offset));
    SET(command->out, create_eq_out__eq_number, id);
    return STATUS_OK;
}

static uint8_t destroy_eq(Function *function, Command *command)
{
    resource_delete(function, OP_CREATE_EQ, command->in[11]);
    return STATUS_OK;
}

const CommandEntry event_queue_commands[] = {
    { OP_CREATE_EQ, create_eq },
    { OP_DESTROY_EQ, destroy_eq },
    { 0, NULL },
};
