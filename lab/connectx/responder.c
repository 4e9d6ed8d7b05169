/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reliable connections, the end that receives requests. */
#include "reliable.h"

enum { EVENT_INVALID_REQUEST = 0x10, EVENT_ACCESS_ERROR = 0x11 };
/* Syndromes of completions, and opcodes. */
enum { SYNDROME_LENGTH = 0x1, SYNDROME_PROTECTION = 0x4 };
enum { RESPONSE_WRITE_IMMEDIATE = 1, RESPONSE_SEND = 2, RESPONSE_SEND_IMMEDIATE = 3 };

static void acknowledge(Function *function, QueuePair *pair, uint32_t psn, uint8_t what)
{
    g_autofree RdmaPacket *packet = g_new0(RdmaPacket, 1);

    packet_begin(packet, ACKNOWLEDGE, pair->remote, psn, false);
    stl_be_p(packet->bytes + packet->length, (uint32_t)what << 24 | (pair->response.messages & PSN_MASK));
    packet->length += 4;
    network_send(function, &pair->path, packet);
}

/* Ends the connection at this end, too: programs get an event (enum mlx5_event in include/linux/mlx5/device.h). */
static void refuse(Function *function, QueuePair *pair, uint32_t psn, uint8_t what)
{
    acknowledge(function, pair, psn, what);
    queue_pair_fail(function, pair, what == FORBIDDEN ? EVENT_ACCESS_ERROR : EVENT_INVALID_REQUEST);
}

static uint8_t read_opcode(uint32_t index, uint32_t count)
{
    if (count == 1) {
        return READ_ONLY;
    }
    return index == 0 ? READ_FIRST : index == count - 1 ? READ_LAST : READ_MIDDLE;
}

/* A request that is repeated is answered again. It may ask for more packets than the first time. */
static void expect_after(Response *response, uint32_t psn)
{
    if (((psn - response->expected) & PSN_MASK) <= PSN_MASK / 2) {
        response->expected = psn & PSN_MASK;
    }
}

static void answer_read(Function *function, QueuePair *pair, const RdmaPacket *packet, uint32_t psn)
{
    const uint8_t *address = packet->bytes + PACKET_HEADER;
    uint32_t length = ldl_be_p(address + 12), count = MAX(1, DIV_ROUND_UP(length, pair->mtu));
    g_autofree RdmaPacket *answer = g_new0(RdmaPacket, 1);
    uint8_t data[LARGEST_MTU];

    if (packet->length < PACKET_HEADER + REMOTE_ADDRESS || length > WINDOW * LARGEST_MTU || !pair->remote_read) {
        refuse(function, pair, psn, INVALID);
        return;
    }
    pair->response.messages += psn == pair->response.expected;
    expect_after(&pair->response, psn + count);
    for (uint32_t index = 0; index < count; index++) {
        uint32_t offset = index * pair->mtu, part = MIN(pair->mtu, length - offset);

        if (part && !memory_key_access(function, ldl_be_p(address + 8), pair->domain, READ_REMOTE, ldq_be_p(address) + offset,
                                       data, part)) {
            refuse(function, pair, psn + index, FORBIDDEN);
            return;
        }
        packet_begin(answer, read_opcode(index, count), pair->remote, psn + index, false);
        if (read_opcode(index, count) != READ_MIDDLE) {
            stl_be_p(answer->bytes + answer->length, (uint32_t)ACCEPTED << 24 | (pair->response.messages & PSN_MASK));
            answer->length += 4;
        }
        packet_append_data(answer, data, part);
        network_send(function, &pair->path, answer);
    }
}

static void answer_value(Function *function, QueuePair *pair, uint32_t psn)
{
    g_autofree RdmaPacket *packet = g_new0(RdmaPacket, 1);

    packet_begin(packet, ATOMIC_ACKNOWLEDGE, pair->remote, psn, false);
    stl_be_p(packet->bytes + packet->length, (uint32_t)ACCEPTED << 24 | (pair->response.messages & PSN_MASK));
    stq_be_p(packet->bytes + packet->length + 4, pair->response.value);
    packet->length += 4 + ATOMIC_LENGTH;
    network_send(function, &pair->path, packet);
}

/* Adds, or swaps if the old value is the expected one. */
static uint8_t change_value(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    const uint8_t *at = packet->bytes + PACKET_HEADER;
    uint64_t address = ldq_be_p(at), operand = ldq_be_p(at + 12), expected = ldq_be_p(at + 20), old;
    uint32_t key = ldl_be_p(at + 8);
    uint8_t bytes[ATOMIC_LENGTH];

    if (packet->length < PACKET_HEADER + ATOMIC_ADDRESS || address % ATOMIC_LENGTH || !pair->remote_atomic) {
        return INVALID;
    }
    if (!memory_key_access(function, key, pair->domain, READ_ATOMIC, address, bytes, sizeof(bytes))) {
        return FORBIDDEN;
    }
    old = ldq_le_p(bytes);
    if (packet->bytes[PACKET_OPCODE] == FETCH_ADD) {
        stq_le_p(bytes, old + operand);
    } else if (old == expected) {
        stq_le_p(bytes, operand);
    }
    if (!memory_key_access(function, key, pair->domain, WRITE_ATOMIC, address, bytes, sizeof(bytes))) {
        return FORBIDDEN;
    }
    pair->response.value = old;
    return ACCEPTED;
}

/* A repeated request changes nothing: it gets the value of the first time, which was the last one, as one request is under way. */
static void answer_atomic(Function *function, QueuePair *pair, const RdmaPacket *packet, uint32_t psn)
{
    uint8_t what = ACCEPTED;

    if (psn == pair->response.expected) {
        what = change_value(function, pair, packet);
        if (what == ACCEPTED) {
            pair->response.messages++;
            expect_after(&pair->response, psn + 1);
        }
    }
    if (what == ACCEPTED) {
        answer_value(function, pair, psn);
    } else {
        refuse(function, pair, psn, what);
    }
}

static uint8_t refusal(RdmaResult result)
{
    return result == RDMA_DONE ? ACCEPTED : result == RDMA_REMOTE_TOO_SHORT ? INVALID : FAILED;
}

/* The last packet of a message that uses a receive buffer. */
static uint8_t end_message(Function *function, QueuePair *pair, const RdmaPacket *packet, bool into_buffer, bool immediate)
{
    Response *response = &pair->response;
    Message message = { response->message->data, response->message->len };
    uint8_t entry[64] = { 0 };
    RdmaResult result = into_buffer ? receive_fill(function, pair, &message) : RDMA_DONE;

    if (result == RDMA_REMOTE_TOO_SHORT || result == RDMA_REMOTE_FAILURE) {
        receive_failed(function, pair, result == RDMA_REMOTE_TOO_SHORT ? SYNDROME_LENGTH : SYNDROME_PROTECTION);
    } else {
        memcpy(entry + 36, packet->bytes + response->immediate_at, immediate ? 4 : 0);
        receive_complete(function, pair,
                         !into_buffer ? RESPONSE_WRITE_IMMEDIATE : immediate ? RESPONSE_SEND_IMMEDIATE : RESPONSE_SEND,
                         into_buffer ? message.length : response->offset, entry);
    }
    return refusal(result);
}

static uint8_t take_write(Function *function, QueuePair *pair, const RdmaPacket *packet, uint32_t at, uint32_t length)
{
    Response *response = &pair->response;

    if (!pair->remote_write) {
        return INVALID;
    }
    if (length && !memory_key_access(function, response->key, pair->domain, WRITE_REMOTE, response->address + response->offset,
                                     (uint8_t *)packet->bytes + at, length)) {
        return FORBIDDEN;
    }
    response->offset += length;
    return ACCEPTED;
}

/* A packet of a send or write that is the next in order. Without a receive buffer nothing of it is kept, and it comes again. */
static uint8_t take_data(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    Response *response = &pair->response;
    uint8_t opcode = packet->bytes[PACKET_OPCODE], part = opcode % KINDS, what = ACCEPTED;
    bool write = opcode >= KINDS, first = part == FIRST || part >= ONLY, last = part >= LAST;
    bool immediate = part == LAST_IMMEDIATE || part == ONLY_IMMEDIATE;
    uint32_t at = PACKET_HEADER, length;

    if ((write ? immediate : first) && !receive_is_ready(function, pair)) {
        return NOT_READY;
    }
    if (first) {
        g_byte_array_set_size(response->message, 0);
        response->offset = 0;
        if (write) {
            response->address = ldq_be_p(packet->bytes + at);
            response->key = ldl_be_p(packet->bytes + at + 8);
            at += REMOTE_ADDRESS;
        }
    }
    response->immediate_at = at;
    at += immediate ? 4 : 0;
    length = packet_data_length(packet, at);
    if (write) {
        what = take_write(function, pair, packet, at, length);
    } else {
        g_byte_array_append(response->message, packet->bytes + at, length);
    }
    if (what == ACCEPTED && last && (!write || immediate)) {
        what = end_message(function, pair, packet, !write, immediate);
    }
    response->messages += what == ACCEPTED && last;
    return what;
}

static void take_next(Function *function, QueuePair *pair, const RdmaPacket *packet, uint32_t psn, bool asks)
{
    uint8_t what = take_data(function, pair, packet);

    if (what == ACCEPTED) {
        pair->response.expected = (psn + 1) & PSN_MASK;
    }
    if (what == INVALID || what == FORBIDDEN || what == FAILED) {
        refuse(function, pair, psn, what);
    } else if (what == NOT_READY) {
        pair->response.complained = true;
        acknowledge(function, pair, psn, NOT_READY | pair->busy_code);
    } else if (asks) {
        acknowledge(function, pair, psn, what);
    }
}

/*
 * A packet from the past was lost on its way back: it is only acknowledged. One from the future shows that others were lost, or follows
 * one without a receive buffer: the other end is told once.
 */
void request_arrived(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    uint32_t word = ldl_be_p(packet->bytes + PACKET_NUMBER), psn = word & PSN_MASK;
    uint32_t ahead = (psn - pair->response.expected) & PSN_MASK;
    bool past = ahead > PSN_MASK / 2, asks = word >> 31;

    function->counted[DUPLICATE_REQUEST] += past;
    if (!past && ahead) {
        if (!pair->response.complained) {
            pair->response.complained = true;
            function->counted[OUT_OF_SEQUENCE]++;
            acknowledge(function, pair, pair->response.expected, OUT_OF_ORDER);
        }
        return;
    }
    pair->response.complained = false;
    if (packet->bytes[PACKET_OPCODE] == READ_REQUEST) {
        answer_read(function, pair, packet, psn);
    } else if (packet->bytes[PACKET_OPCODE] >= COMPARE_SWAP) {
        answer_atomic(function, pair, packet, psn);
    } else if (!past) {
        take_next(function, pair, packet, psn, asks);
    } else if (asks) {
        acknowledge(function, pair, pair->response.expected - 1, ACCEPTED);
    }
}
