/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reliable connections: write, read and send, cut into packets that the other end acknowledges. One request of a queue pair is under
 * way at a time. What is lost is sent again from the first packet that was not acknowledged. On one card a packet and its answer
 * arrive while it is being sent; over the wire they arrive later.
 */
#include "connectx.h"

/* Packets under way without an acknowledgement, and packets of one read request. */
#define WINDOW 64
#define RECEIVER_MS 1
/* Twice as long as the other host of a lab may be busy: a shorter timeout of the driver would end connections that work. */
#define SHORTEST_TIMEOUT_MS 250
#define PSN_MASK 0xffffff
#define REMOTE_ADDRESS 16 /* address, key, length */
enum { WRITE = 0x8, WRITE_IMMEDIATE = 0x9, SEND = 0xa, SEND_IMMEDIATE = 0xb, READ = 0x10 };
enum { RESPONSE_WRITE_IMMEDIATE = 1, RESPONSE_SEND = 2, RESPONSE_SEND_IMMEDIATE = 3 };
/* Opcodes of packets: send and write have six each. */
enum { FIRST = 0, MIDDLE = 1, LAST = 2, LAST_IMMEDIATE = 3, ONLY = 4, ONLY_IMMEDIATE = 5, KINDS = 6,
       READ_REQUEST = 0xc, READ_FIRST = 0xd, READ_MIDDLE = 0xe, READ_LAST = 0xf, READ_ONLY = 0x10, ACKNOWLEDGE = 0x11 };
/* What an acknowledgement says. */
enum { ACCEPTED = 0x1f, NOT_READY = 0x20, OUT_OF_ORDER = 0x60, INVALID = 0x61, FORBIDDEN = 0x62, FAILED = 0x63 };

static int64_t now_ms(void)
{
    return qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL);
}

static bool writes(const Request *request)
{
    return request->wqe[3] == WRITE || request->wqe[3] == WRITE_IMMEDIATE;
}

static bool has_immediate(const Request *request)
{
    return request->wqe[3] == WRITE_IMMEDIATE || request->wqe[3] == SEND_IMMEDIATE;
}

static void decide(Request *request, RdmaResult result)
{
    if (request->result == RDMA_WAITING) {
        request->result = result;
    }
}

void request_end(QueuePair *pair)
{
    g_free(pair->request.message.bytes);
    memset(&pair->request, 0, sizeof(pair->request));
}

/* A request is a control segment of 16 bytes, for write and read the remote address, then data segments. */
void reliable_begin(Function *function, QueuePair *pair)
{
    Request *request = &pair->request;
    bool reads = request->wqe[3] == READ, addressed = reads || writes(request);
    const uint8_t *segments = request->wqe + (addressed ? 32 : 16), *end = request->wqe + request->size;

    request->result = RDMA_LOCAL_ERROR;
    if ((!addressed && request->wqe[3] != SEND && request->wqe[3] != SEND_IMMEDIATE) || segments > end ||
        !message_prepare(&request->message, segments, end) ||
        (!reads && !message_gather(function, segments, end, &request->message))) {
        return;
    }
    request->result = RDMA_WAITING;
    request->first = pair->next_psn;
    request->packets = MAX(1, DIV_ROUND_UP(request->message.length, pair->mtu));
    pair->next_psn = (pair->next_psn + request->packets) & PSN_MASK;
}

static uint8_t opcode_of(const Request *request, uint32_t index)
{
    bool first = index == 0, last = index == request->packets - 1;
    uint8_t base = writes(request) ? KINDS : 0, immediate = has_immediate(request);

    if (last) {
        return base + (first ? ONLY : LAST) + immediate;
    }
    return base + (first ? FIRST : MIDDLE);
}

static void send_data(Function *function, QueuePair *pair)
{
    g_autofree RdmaPacket *packet = g_new0(RdmaPacket, 1);
    Request *request = &pair->request;
    uint32_t index = request->sent++, offset = index * pair->mtu;
    bool last = index == request->packets - 1, asks = last || request->sent - request->acknowledged == WINDOW;

    packet_begin(packet, opcode_of(request, index), pair->remote, request->first + index, asks);
    if (index == 0 && writes(request)) {
        memcpy(packet->bytes + packet->length, request->wqe + 16, 12);
        stl_be_p(packet->bytes + packet->length + 12, request->message.length);
        packet->length += REMOTE_ADDRESS;
    }
    if (last && has_immediate(request)) {
        memcpy(packet->bytes + packet->length, request->wqe + 12, 4);
        packet->length += 4;
    }
    packet_append_data(packet, request->message.bytes + offset, MIN(pair->mtu, request->message.length - offset));
    network_send(function, &pair->path, packet);
}

/* Asks for the next packets of a read, once those of the last request have arrived. */
static void send_read(Function *function, QueuePair *pair)
{
    g_autofree RdmaPacket *packet = g_new0(RdmaPacket, 1);
    Request *request = &pair->request;
    uint32_t index = request->sent, offset = index * pair->mtu, count = MIN(WINDOW, request->packets - index);
    uint8_t *address;

    request->sent += count;
    packet_begin(packet, READ_REQUEST, pair->remote, request->first + index, true);
    address = packet->bytes + packet->length;
    stq_be_p(address, ldq_be_p(request->wqe + 16) + offset);
    memcpy(address + 8, request->wqe + 24, 4);
    stl_be_p(address + 12, MIN(count * pair->mtu, request->message.length - offset));
    packet->length += REMOTE_ADDRESS;
    network_send(function, &pair->path, packet);
}

static bool may_send(const Request *request)
{
    bool room = request->wqe[3] == READ ? request->sent == request->acknowledged
                                        : request->sent - request->acknowledged < WINDOW;

    return request->result == RDMA_WAITING && !request->receiver_busy && request->sent < request->packets && room;
}

/* The driver's timeout is 4.096 us to the power of two; 0 means that there is none. */
static int64_t timeout_ms(const QueuePair *pair)
{
    return MAX(SHORTEST_TIMEOUT_MS, (4096LL << pair->timeout) / SCALE_MS);
}

/* When the answer is overdue, all that was not acknowledged is sent again. */
static void look_at_clock(QueuePair *pair)
{
    Request *request = &pair->request;

    if (!request->deadline || now_ms() < request->deadline) {
        return;
    }
    if (!request->receiver_busy && pair->timeout && request->attempts++ >= pair->retries) {
        decide(request, RDMA_UNREACHABLE);
    }
    request->receiver_busy = false;
    request->sent = request->acknowledged;
    request->deadline = 0;
}

/* Returns RDMA_WAITING if an answer is missing; the function's timer then looks again. */
RdmaResult reliable_advance(Function *function, QueuePair *pair)
{
    Request *request = &pair->request;

    look_at_clock(pair);
    while (may_send(request)) {
        if (request->wqe[3] == READ) {
            send_read(function, pair);
        } else {
            send_data(function, pair);
        }
    }
    if (request->result == RDMA_WAITING) {
        if (!request->deadline) {
            request->deadline = now_ms() + (request->receiver_busy ? RECEIVER_MS : timeout_ms(pair));
        }
        queue_pair_look_again(function, MAX(1, request->deadline - now_ms()));
    }
    return request->result;
}

/* Everything before this packet has arrived. */
static void progress(Request *request, uint32_t index)
{
    if (index > request->acknowledged) {
        request->acknowledged = index;
        request->attempts = 0;
        request->deadline = 0;
    }
}

static void refused(Request *request, uint32_t index, uint8_t what)
{
    if (what >> 5 == NOT_READY >> 5 || what == OUT_OF_ORDER) {
        progress(request, index);
        request->sent = request->acknowledged;
        request->receiver_busy = what != OUT_OF_ORDER;
        request->deadline = 0;
    } else {
        decide(request, what == FORBIDDEN ? RDMA_REMOTE_ACCESS : what == INVALID ? RDMA_REMOTE_TOO_SHORT : RDMA_REMOTE_FAILURE);
    }
}

static void acknowledged(Request *request, const RdmaPacket *packet, uint32_t index)
{
    uint8_t what = packet->bytes[PACKET_HEADER];

    if (what >> 5 != 0) {
        refused(request, index, what);
    } else if (request->wqe[3] != READ) {
        progress(request, index + 1);
        if (request->acknowledged == request->packets) {
            decide(request, RDMA_DONE);
        }
    }
}

/* Packets of a read arrive in order, or the rest is requested again. */
static void read_arrived(Function *function, Request *request, const RdmaPacket *packet, uint32_t index, uint32_t mtu)
{
    uint32_t at = PACKET_HEADER + (packet->bytes[PACKET_OPCODE] == READ_MIDDLE ? 0 : 4), offset = index * mtu;
    const uint8_t *segments = request->wqe + 32, *end = request->wqe + request->size;

    if (request->wqe[3] != READ || index != request->acknowledged ||
        packet_data_length(packet, at) != MIN(mtu, request->message.length - offset)) {
        return;
    }
    memcpy(request->message.bytes + offset, packet->bytes + at, packet_data_length(packet, at));
    progress(request, index + 1);
    if (request->acknowledged == request->packets) {
        bool all = message_scatter(function, segments, end, &request->message) == request->message.length;

        decide(request, all ? RDMA_DONE : RDMA_LOCAL_ERROR);
    }
}

static void answer_arrived(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    Request *request = &pair->request;
    uint32_t index = (ldl_be_p(packet->bytes + PACKET_NUMBER) - request->first) & PSN_MASK;

    if (!request->active || request->result != RDMA_WAITING || index >= request->sent) {
        return;
    }
    if (packet->bytes[PACKET_OPCODE] == ACKNOWLEDGE) {
        acknowledged(request, packet, index);
    } else {
        read_arrived(function, request, packet, index, pair->mtu);
    }
    queue_pair_ring(function, pair);
}

static void acknowledge(Function *function, QueuePair *pair, uint32_t psn, uint8_t what)
{
    g_autofree RdmaPacket *packet = g_new0(RdmaPacket, 1);

    packet_begin(packet, ACKNOWLEDGE, pair->remote, psn, false);
    stl_be_p(packet->bytes + packet->length, (uint32_t)what << 24 | (pair->response.messages & PSN_MASK));
    packet->length += 4;
    network_send(function, &pair->path, packet);
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

    if (packet->length < PACKET_HEADER + REMOTE_ADDRESS || length > WINDOW * LARGEST_MTU) {
        acknowledge(function, pair, psn, INVALID);
        return;
    }
    pair->response.messages += psn == pair->response.expected;
    expect_after(&pair->response, psn + count);
    for (uint32_t index = 0; index < count; index++) {
        uint32_t offset = index * pair->mtu, part = MIN(pair->mtu, length - offset);

        if (part && !memory_key_access(function, ldl_be_p(address + 8), ldq_be_p(address) + offset, data, part, false, true)) {
            acknowledge(function, pair, psn + index, FORBIDDEN);
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

    if (result == RDMA_DONE) {
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

    if (length && !memory_key_access(function, response->key, response->address + response->offset,
                                     (uint8_t *)packet->bytes + at, length, true, true)) {
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
    if (asks || what != ACCEPTED) {
        acknowledge(function, pair, psn, what);
    }
}

/* A packet from the past was lost on its way back: it is only acknowledged. One from the future shows that others were lost. */
static void request_arrived(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    uint32_t word = ldl_be_p(packet->bytes + PACKET_NUMBER), psn = word & PSN_MASK;
    uint32_t ahead = (psn - pair->response.expected) & PSN_MASK;
    bool past = ahead > PSN_MASK / 2, asks = word >> 31;

    if (!past && ahead) {
        if (!pair->response.complained) {
            pair->response.complained = true;
            acknowledge(function, pair, pair->response.expected, OUT_OF_ORDER);
        }
        return;
    }
    pair->response.complained = false;
    if (packet->bytes[PACKET_OPCODE] == READ_REQUEST) {
        answer_read(function, pair, packet, psn);
    } else if (!past) {
        take_next(function, pair, packet, psn, asks);
    } else if (asks) {
        acknowledge(function, pair, pair->response.expected - 1, ACCEPTED);
    }
}

/* Only the other end of the connection is heard. */
void reliable_receive(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    uint8_t opcode = packet->bytes[PACKET_OPCODE];

    if (!function->port->infiniband && memcmp(packet->source, pair->path.gid, sizeof(packet->source))) {
        return;
    }
    if (opcode <= READ_REQUEST) {
        request_arrived(function, pair, packet);
    } else if (opcode <= ACKNOWLEDGE) {
        answer_arrived(function, pair, packet);
    }
}
