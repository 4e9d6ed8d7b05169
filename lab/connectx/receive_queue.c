/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The receive side of a function: RDMA goes to queue pairs, other frames through the function's own flow tables, then a TIR, perhaps
 * a table of queues, and a queue's next buffer (en_rx.c).
 */
#include "connectx.h"

#define READY 1
#define LARGEST_WQE 512
#define RESPONSE_SEND (2 << 4)
#define CHECKSUMS_OK 0x06

static bool next_buffer(Function *function, const WorkQueue *queue, uint8_t *wqe, uint32_t size)
{
    uint32_t mask = (1u << queue->ring.log_size) - 1;
    uint8_t record[4];

    return memory_read(function, queue->doorbell_record, record, 4) && queue->consumer != (uint16_t)ldl_be_p(record) &&
           ring_read(function, &queue->ring, (queue->consumer & mask) * queue->ring.stride, wqe, size);
}

static void scatter(Function *function, const uint8_t *wqe, uint32_t size, const Frame *frame)
{
    const uint8_t *from = frame->bytes;
    uint32_t left = frame->length;

    for (uint32_t at = 0; at < size && left; at += 16) {
        uint32_t room = ldl_be_p(wqe + at), part = MIN(room, left);

        if (!room) {
            return;
        }
        memory_write(function, ldq_be_p(wqe + at + 8), from, part);
        from += part;
        left -= part;
    }
}

/* The driver takes the one's complement sum of all that follows the Ethernet header from the completion (CHECKSUM_COMPLETE). */
static void complete(Function *function, const WorkQueue *queue, CompletionQueue *completions, const Frame *frame)
{
    uint8_t entry[64] = { 0 };
    uint32_t header = frame_is_tagged(frame) ? 18 : 14;

    stw_be_p(entry + 20, checksum_fold(checksum_add(frame->bytes + header, frame->length - header, 0)));
    entry[28] = CHECKSUMS_OK;
    stl_be_p(entry + 44, frame->length);
    stw_be_p(entry + 60, queue->consumer);
    entry[63] = RESPONSE_SEND;
    completion_push(function, completions, entry);
}

/* A frame without a buffer is lost. */
static void fill(Function *function, WorkQueue *queue, const Frame *frame)
{
    CompletionQueue *completions = resource_find(function, OP_CREATE_CQ, queue->completion_queue);
    uint32_t size = MIN(queue->ring.stride, LARGEST_WQE);
    uint8_t wqe[LARGEST_WQE];

    if (queue->state != READY || !completions || !next_buffer(function, queue, wqe, size)) {
        return;
    }
    scatter(function, wqe, size, frame);
    complete(function, queue, completions, frame);
    queue->consumer++;
}

/* A TIR names a queue, or a table of queues of which the model always takes the first. */
static WorkQueue *queue_of(Function *function, uint32_t number)
{
    Resource *tir = resource_find(function, OP_CREATE_TIR, number), *table;
    const uint8_t *context;

    if (!tir) {
        return NULL;
    }
    context = AT(tir->in, create_tir_in__ctx);
    if (GET(context, tirc__disp_type) == 0) {
        return resource_find(function, OP_CREATE_RQ, GET(context, tirc__inline_rqn));
    }
    table = resource_find(function, OP_CREATE_RQT, GET(context, tirc__indirect_table));
    if (!table) {
        return NULL;
    }
    context = AT(table->in, create_rqt_in__rqt_context);
    return resource_find(function, OP_CREATE_RQ, ldl_be_p(AT(context, rqtc__rq_num)) & 0xffffff);
}

void receive_queue_deliver(Port *port, uint16_t vport, Frame *frame)
{
    Function *function = function_of_vport(port, vport);
    Verdict verdict = { 0 };
    bool rdma = frame_is_rdma(port, vport, frame);

    if (!function || !function->initialized || !vport_is_up(port, vport) || !migration_receives(function)) {
        return;
    }
    vport_count(port, vport, false, rdma ? NULL : frame->bytes, frame->length);
    if (rdma) {
        network_receive(function, frame);
        return;
    }
    frame_dissect(frame);
    flow_walk(function, flow_root(function, TABLE_NIC_RECEIVE, 0), frame, &verdict);
    for (unsigned i = 0; i < verdict.tir_count; i++) {
        WorkQueue *queue = queue_of(function, verdict.tirs[i]);

        if (queue) {
            fill(function, queue, frame);
        }
    }
}
