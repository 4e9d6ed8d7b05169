/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Send queues: requests of the driver become frames (en_tx.c; struct mlx5e_tx_wqe). */
#include "connectx.h"

#define BLOCK 64
#define LARGEST_PACKET 0x20000
#define READY 1
enum { OPCODE_SEND = 0x0a, OPCODE_SEGMENT = 0x0e };
/* Offsets in the request: control segment, Ethernet segment, data segments of 16 bytes. */
enum { OPCODE = 3, SIZE = 4, FENCE_AND_COMPLETION = 11, CHECKSUMS = 20, SEGMENT_SIZE = 22, INLINE_SIZE = 28, INLINE = 30,
       DATA_AFTER_TAG = 32 };
#define COMPLETION_WANTED 0x8
#define CHECKSUMS_WANTED 0xc0
#define INSERT_TAG 0x8000 /* instead of a size: what follows is a VLAN tag */
#define DATA_IS_INLINE 0x80000000u

typedef struct Packet {
    uint8_t bytes[LARGEST_PACKET];
    uint32_t length;
} Packet;

static bool add_inline(Packet *packet, const uint8_t *bytes, uint32_t length)
{
    if (packet->length + length > LARGEST_PACKET) {
        return false;
    }
    memcpy(packet->bytes + packet->length, bytes, length);
    packet->length += length;
    return true;
}

static bool add_memory(Function *function, Packet *packet, uint64_t address, uint32_t length)
{
    if (packet->length + length > LARGEST_PACKET || !memory_read(function, address, packet->bytes + packet->length, length)) {
        return false;
    }
    packet->length += length;
    return true;
}

static bool add_data(Function *function, Packet *packet, const uint8_t *wqe, uint32_t at, uint32_t size)
{
    while (at + 16 <= size) {
        uint32_t length = ldl_be_p(wqe + at);

        if (length & DATA_IS_INLINE) {
            length &= 0x3ff;
            if (at + 4 + length > size || !add_inline(packet, wqe + at + 4, length)) {
                return false;
            }
            at += ROUND_UP(4 + length, 16);
        } else {
            if (!add_memory(function, packet, ldq_be_p(wqe + at + 8), length)) {
                return false;
            }
            at += 16;
        }
    }
    return true;
}

static void send_one(Function *function, uint32_t queue, const uint8_t *wqe, const Packet *packet)
{
    g_autofree Frame *frame = NULL;

    if (packet->length > MAX_FRAME || packet->length < 14) {
        return;
    }
    frame = g_new0(Frame, 1);
    memcpy(frame->bytes, packet->bytes, packet->length);
    frame->length = packet->length;
    frame->queue = queue;
    if (lduw_be_p(wqe + INLINE_SIZE) & INSERT_TAG) {
        frame_tag(frame, lduw_be_p(wqe + INLINE));
    }
    if (wqe[CHECKSUMS] & CHECKSUMS_WANTED) {
        checksum_fill(frame);
    }
    eswitch_transmit(function, frame);
}

/* The headers are inline, so that the first data segment begins after them, at a multiple of 16. */
static void send_request(Function *function, uint32_t queue, const uint8_t *wqe, uint32_t size)
{
    g_autofree Packet *packet = g_new(Packet, 1);
    uint16_t inline_size = lduw_be_p(wqe + INLINE_SIZE);
    uint32_t at = DATA_AFTER_TAG;
    bool segmented = wqe[OPCODE] == OPCODE_SEGMENT && !(inline_size & INSERT_TAG);

    packet->length = 0;
    if (!(inline_size & INSERT_TAG)) {
        if (size < INLINE || !add_inline(packet, wqe + INLINE, MIN(inline_size, size - INLINE))) {
            return;
        }
        at = 16 + ROUND_UP(MAX(14 + inline_size, 16), 16);
    }
    if (!add_data(function, packet, wqe, at, size)) {
        return;
    }
    if (segmented && inline_size > 40 && packet->length > inline_size && (lduw_be_p(wqe + SEGMENT_SIZE) & 0x3fff)) {
        segmentation_send(function, queue, packet->bytes, packet->length, inline_size, lduw_be_p(wqe + SEGMENT_SIZE) & 0x3fff);
    } else {
        send_one(function, queue, wqe, packet);
    }
}

static void complete(Function *function, const WorkQueue *queue, uint16_t counter)
{
    CompletionQueue *completions = resource_find(function, OP_CREATE_CQ, queue->completion_queue);
    uint8_t entry[64] = { 0 };

    if (completions) {
        stl_be_p(entry + 56, queue->resource.id);
        stw_be_p(entry + 60, counter);
        completion_push(function, completions, entry);
    }
}

static bool read_blocks(Function *function, const WorkQueue *queue, uint32_t first, uint8_t *wqe, uint32_t length)
{
    return ring_read_wrapped(function, &queue->ring, 0, BLOCK << queue->ring.log_size, first * BLOCK, wqe, length);
}

/*
 * Requests without data (NOP) complete, too: `ip link set up` posts one to the internal queue of each channel, and without a
 * completion waits 20 s for each ("Failed to get min RX wqes").
 */
static bool run_next(Function *function, WorkQueue *queue)
{
    uint8_t wqe[1024];
    uint16_t first = queue->consumer;
    uint32_t size;

    if (!read_blocks(function, queue, first, wqe, 16)) {
        return false;
    }
    size = (ldl_be_p(wqe + SIZE) & 0x3f) * 16;
    queue->consumer += MAX(1, DIV_ROUND_UP(size, BLOCK));
    if (!read_blocks(function, queue, first, wqe, size)) {
        return false;
    }
    if (wqe[OPCODE] == OPCODE_SEND || wqe[OPCODE] == OPCODE_SEGMENT) {
        send_request(function, queue->resource.id, wqe, size);
    }
    if (wqe[FENCE_AND_COMPLETION] & COMPLETION_WANTED) {
        complete(function, queue, first);
    }
    return true;
}

/* The producer's index is the second counter of the doorbell record. */
void send_queue_ring(Function *function, uint32_t number)
{
    WorkQueue *queue = resource_find(function, OP_CREATE_SQ, number);
    uint8_t record[4];
    uint16_t producer;

    if (!queue || queue->state != READY || !memory_read(function, queue->doorbell_record + 4, record, 4)) {
        return;
    }
    producer = ldl_be_p(record);
    for (unsigned guard = 0; queue->consumer != producer && guard <= UINT16_MAX; guard++) {
        if (!run_next(function, queue)) {
            return;
        }
    }
}
