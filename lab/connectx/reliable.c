/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reliable connections, the end that sends requests: write, read and send, cut into packets that the other end acknowledges, and atomics.
 * One request of a queue pair is under way at a time. What is lost is sent again from the first packet that was not acknowledged. On
 * one card a packet and its answer arrive while it is being sent; over the wire they arrive later.
 */
#include "reliable.h"

/* Twice as long as the other host of a lab may be busy: a shorter timeout of the driver would end connections that work. */
#define SHORTEST_TIMEOUT_MS 250
#define BUSY_FOR_EVER 7
/* Opcodes of requests (MLX5_OPCODE_* in include/linux/mlx5/device.h). */
enum { WRITE = 0x8, WRITE_IMMEDIATE = 0x9, SEND = 0xa, SEND_IMMEDIATE = 0xb, READ = 0x10, SWAP = 0x11, ADD = 0x12 };

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

static bool is_atomic(const Request *request)
{
    return request->wqe[3] == SWAP || request->wqe[3] == ADD;
}

/* The answer has data, so an acknowledgement without data does not complete the request. */
static bool brings_data(const Request *request)
{
    return request->wqe[3] == READ || is_atomic(request);
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

static bool is_known(const Request *request)
{
    return brings_data(request) || writes(request) || request->wqe[3] == SEND || request->wqe[3] == SEND_IMMEDIATE;
}

/*
 * A request is a control segment of 16 bytes, except for send the remote address, for atomics the values to add or swap and to
 * compare with, then data segments.
 */
static const uint8_t *segments_of(const Request *request)
{
    return request->wqe + (is_atomic(request) ? 48 : brings_data(request) || writes(request) ? 32 : 16);
}

void reliable_begin(Function *function, QueuePair *pair)
{
    Request *request = &pair->request;
    const uint8_t *segments = segments_of(request), *end = request->wqe + request->size;

    request->result = RDMA_LOCAL_ERROR;
    if (!is_known(request) || segments > end || !message_prepare(&request->message, segments, end) ||
        (is_atomic(request) && request->message.length != ATOMIC_LENGTH) ||
        (!brings_data(request) && !message_gather(function, pair->domain, segments, end, &request->message))) {
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

static void send_atomic(Function *function, QueuePair *pair)
{
    g_autofree RdmaPacket *packet = g_new0(RdmaPacket, 1);
    Request *request = &pair->request;

    request->sent = 1;
    packet_begin(packet, request->wqe[3] == SWAP ? COMPARE_SWAP : FETCH_ADD, pair->remote, request->first, true);
    memcpy(packet->bytes + packet->length, request->wqe + 16, 12);
    memcpy(packet->bytes + packet->length + 12, request->wqe + 32, 16);
    packet->length += ATOMIC_ADDRESS;
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

/* The codes go up by a factor of two in two steps, from 10 us; 0 is the longest (IBTA specification, table of RNR NAK timers). */
static int64_t busy_ms(uint8_t code)
{
    unsigned step = code ? code : 32;

    return MAX(1, ((step % 2 ? 15LL : 10LL) << step / 2) / 1000);
}

/* When the answer is overdue, all that was not acknowledged is sent again. */
static void look_at_clock(Function *function, QueuePair *pair)
{
    Request *request = &pair->request;

    if (!request->deadline || now_ms() < request->deadline) {
        return;
    }
    if (request->receiver_busy && pair->busy_retries != BUSY_FOR_EVER && request->refusals++ >= pair->busy_retries) {
        decide(request, RDMA_RECEIVER_BUSY);
    }
    if (!request->receiver_busy && pair->timeout) {
        function->counted[ACKNOWLEDGEMENT_TIMEOUT]++;
        if (request->attempts++ >= pair->retries) {
            decide(request, RDMA_UNREACHABLE);
        }
    }
    request->receiver_busy = false;
    request->sent = request->acknowledged;
    request->deadline = 0;
}

/* Returns RDMA_WAITING if an answer is missing; the function's timer then looks again. */
RdmaResult reliable_advance(Function *function, QueuePair *pair)
{
    Request *request = &pair->request;

    look_at_clock(function, pair);
    while (may_send(request)) {
        if (request->wqe[3] == READ) {
            send_read(function, pair);
        } else if (is_atomic(request)) {
            send_atomic(function, pair);
        } else {
            send_data(function, pair);
        }
    }
    if (request->result == RDMA_WAITING) {
        if (!request->deadline) {
            request->deadline = now_ms() + (request->receiver_busy ? busy_ms(request->busy_code) : timeout_ms(pair));
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
        request->attempts = request->refusals = 0;
        request->deadline = 0;
    }
}

static void refused(Function *function, Request *request, uint32_t index, uint8_t what)
{
    function->counted[PACKET_SEQUENCE_ERROR] += what == OUT_OF_ORDER;
    if (what >> 5 == NOT_READY >> 5 || what == OUT_OF_ORDER) {
        progress(request, index);
        request->sent = request->acknowledged;
        request->receiver_busy = what != OUT_OF_ORDER;
        request->busy_code = what & 0x1f;
        request->deadline = 0;
    } else {
        decide(request, what == FORBIDDEN ? RDMA_REMOTE_ACCESS : what == INVALID ? RDMA_REMOTE_TOO_SHORT : RDMA_REMOTE_FAILURE);
    }
}

static void acknowledged(Function *function, Request *request, const RdmaPacket *packet, uint32_t index)
{
    uint8_t what = packet->bytes[PACKET_HEADER];

    if (what >> 5 != 0) {
        refused(function, request, index, what);
    } else if (!brings_data(request)) {
        progress(request, index + 1);
        if (request->acknowledged == request->packets) {
            decide(request, RDMA_DONE);
        }
    }
}

static RdmaResult take_answer(Function *function, QueuePair *pair)
{
    Request *request = &pair->request;
    const Message *message = &request->message;

    return message_scatter(function, pair->domain, segments_of(request), request->wqe + request->size, message) == message->length
               ? RDMA_DONE
               : RDMA_LOCAL_ERROR;
}

/* Packets of a read arrive in order, or the rest is requested again. */
static void read_arrived(Function *function, QueuePair *pair, const RdmaPacket *packet, uint32_t index)
{
    Request *request = &pair->request;
    uint32_t at = PACKET_HEADER + (packet->bytes[PACKET_OPCODE] == READ_MIDDLE ? 0 : 4), offset = index * pair->mtu;

    if (request->wqe[3] != READ || index != request->acknowledged ||
        packet_data_length(packet, at) != MIN(pair->mtu, request->message.length - offset)) {
        return;
    }
    memcpy(request->message.bytes + offset, packet->bytes + at, packet_data_length(packet, at));
    progress(request, index + 1);
    if (request->acknowledged == request->packets) {
        decide(request, take_answer(function, pair));
    }
}

/* The driver has asked for values in the host's order of bytes (handle_hca_cap_atomic in main.c). */
static void value_arrived(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    Request *request = &pair->request;

    if (is_atomic(request) && packet->length >= PACKET_HEADER + 4 + ATOMIC_LENGTH) {
        stq_le_p(request->message.bytes, ldq_be_p(packet->bytes + PACKET_HEADER + 4));
        progress(request, 1);
        decide(request, take_answer(function, pair));
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
        acknowledged(function, request, packet, index);
    } else if (packet->bytes[PACKET_OPCODE] == ATOMIC_ACKNOWLEDGE) {
        value_arrived(function, pair, packet);
    } else {
        read_arrived(function, pair, packet, index);
    }
    queue_pair_ring(function, pair);
}

/* Only the other end of the connection is heard. */
void reliable_receive(Function *function, QueuePair *pair, const RdmaPacket *packet)
{
    uint8_t opcode = packet->bytes[PACKET_OPCODE];

    if (!function->port->infiniband && memcmp(packet->source, pair->path.gid, sizeof(packet->source))) {
        return;
    }
    if (opcode <= READ_REQUEST || opcode == COMPARE_SWAP || opcode == FETCH_ADD) {
        request_arrived(function, pair, packet);
    } else if (opcode <= ATOMIC_ACKNOWLEDGE) {
        answer_arrived(function, pair, packet);
    }
}
