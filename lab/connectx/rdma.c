/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data of reliable connections between functions of one port: write, read and send. A message is copied at once, from memory to
 * memory, when its request is found; there are no packets, so neither the flow tables nor the wire see it.
 */
#include "connectx.h"

#define LARGEST_MESSAGE (1u << 30) /* log_max_msg of the capabilities */
#define LARGEST_RECEIVE 512
#define DATA_IS_INLINE 0x80000000u
#define END_OF_LIST 0x100 /* the key of the last entry in a list of buffers (MLX5_TERMINATE_SCATTER_LIST_LKEY) */
enum { NOP = 0x0, WRITE = 0x8, WRITE_IMMEDIATE = 0x9, SEND = 0xa, SEND_IMMEDIATE = 0xb, READ = 0x10 };
enum { RESPONSE_WRITE_IMMEDIATE = 1, RESPONSE_SEND = 2, RESPONSE_SEND_IMMEDIATE = 3 };

typedef struct Peer {
    Function *function;
    QueuePair *pair;
} Peer;

typedef struct Message {
    uint8_t *bytes;
    uint32_t length;
} Message;

static bool has_gid(const Function *function, const uint8_t gid[16])
{
    for (unsigned i = 0; i < GIDS; i++) {
        if (!memcmp(function->gid[i], gid, 16)) {
            return true;
        }
    }
    return false;
}

/* The function that has the GID, or on InfiniBand the LID. */
static Function *peer_function(Port *port, const QueuePair *pair)
{
    for (unsigned number = 0; number <= port->vfs; number++) {
        Function *function = function_of_vport(port, number);
        bool found = port->infiniband ? pair->remote_lid == 1 + number : function && has_gid(function, pair->remote_gid);

        if (found && function && function->initialized) {
            return function;
        }
    }
    return NULL;
}

static bool find_peer(Function *function, const QueuePair *pair, Peer *peer)
{
    Port *port = function->port;

    peer->function = peer_function(port, pair);
    if (!peer->function || !vport_is_up(port, function->vport) || !vport_is_up(port, peer->function->vport)) {
        return false;
    }
    peer->pair = resource_find(peer->function, OP_CREATE_QP, pair->remote);
    return peer->pair && (peer->pair->state == QP_RTR || peer->pair->state == QP_RTS);
}

/* The sum of a request's data segments; UINT32_MAX if it is too long. */
static uint32_t request_length(const uint8_t *at, const uint8_t *end)
{
    uint64_t sum = 0;

    while (at + 16 <= end) {
        uint32_t length = ldl_be_p(at);
        bool is_inline = length & DATA_IS_INLINE;

        length &= is_inline ? 0x3ff : ~0u;
        sum += length;
        at += is_inline ? ROUND_UP(4 + length, 16) : 16;
    }
    return sum <= LARGEST_MESSAGE ? sum : UINT32_MAX;
}

/* From the request's data segments into the message. */
static bool gather(Function *function, const uint8_t *at, const uint8_t *end, Message *message)
{
    uint32_t done = 0;

    while (at + 16 <= end) {
        uint32_t length = ldl_be_p(at);

        if (length & DATA_IS_INLINE) {
            length &= 0x3ff;
            if (at + 4 + length > end) {
                return false;
            }
            memcpy(message->bytes + done, at + 4, length);
            at += ROUND_UP(4 + length, 16);
        } else {
            if (!memory_key_access(function, ldl_be_p(at + 4), ldq_be_p(at + 8), message->bytes + done, length, false,
                                   false)) {
                return false;
            }
            at += 16;
        }
        done += length;
    }
    return true;
}

/* From the message into a list of buffers. Returns how many bytes had room, or -1 if a key forbids it. */
static int64_t scatter(Function *function, const uint8_t *at, const uint8_t *end, const Message *message)
{
    uint32_t done = 0;

    for (; at + 16 <= end && done < message->length; at += 16) {
        uint32_t room = ldl_be_p(at), key = ldl_be_p(at + 4), part = MIN(room, message->length - done);

        if (!room || key == END_OF_LIST) {
            break;
        }
        if (!memory_key_access(function, key, ldq_be_p(at + 8), message->bytes + done, part, true, false)) {
            return -1;
        }
        done += part;
    }
    return done;
}

static void complete_receive(const Peer *peer, CompletionQueue *completions, const uint8_t *wqe, uint32_t length,
                             uint8_t opcode)
{
    uint8_t entry[64] = { 0 };

    stl_be_p(entry + 32, peer->pair->user_index);
    memcpy(entry + 36, wqe + 12, 4); /* immediate data */
    stl_be_p(entry + 44, length);
    stl_be_p(entry + 56, peer->pair->resource.id);
    stw_be_p(entry + 60, peer->pair->receive_consumer++);
    entry[63] = opcode << 4;
    completion_push(peer->function, completions, entry);
}

static RdmaResult fill_buffer(const Peer *peer, const Message *message)
{
    QueuePair *pair = peer->pair;
    uint32_t stride = MIN(pair->receive_stride, LARGEST_RECEIVE), mask = (1u << pair->receive_log) - 1;
    uint8_t buffers[LARGEST_RECEIVE];
    int64_t filled;

    if (!ring_read(peer->function, &pair->ring, (pair->receive_consumer & mask) * pair->receive_stride, buffers, stride)) {
        return RDMA_REMOTE_FAILURE;
    }
    filled = scatter(peer->function, buffers, buffers + stride, message);
    return filled < 0 ? RDMA_REMOTE_FAILURE : filled < message->length ? RDMA_REMOTE_TOO_SHORT : RDMA_DONE;
}

/* Takes the receiver's next buffer, if any: without one the sender tries again, for ever. */
static RdmaResult receive(const Peer *peer, const uint8_t *wqe, const Message *message, bool into_buffer, uint8_t opcode)
{
    QueuePair *pair = peer->pair;
    CompletionQueue *completions = resource_find(peer->function, OP_CREATE_CQ, pair->receive_cq);
    uint8_t record[4];
    RdmaResult result;

    if (!pair->receives || !completions || !memory_read(peer->function, pair->doorbell_record, record, 4)) {
        return RDMA_REMOTE_FAILURE;
    }
    if (pair->receive_consumer == (uint16_t)ldl_be_p(record)) {
        return RDMA_NOT_READY;
    }
    result = into_buffer ? fill_buffer(peer, message) : RDMA_DONE;
    if (result == RDMA_DONE) {
        complete_receive(peer, completions, wqe, message->length, opcode);
    }
    return result;
}

static void count(Function *from, Function *to, uint32_t length)
{
    static const uint8_t unicast[6] = { 0 };

    vport_count(from->port->vport[from->vport].sent, unicast, length);
    vport_count(to->port->vport[to->vport].received, unicast, length);
}

static RdmaResult read_remote(Function *function, const Peer *peer, const uint8_t *wqe, const uint8_t *end, Message *message)
{
    if (!memory_key_access(peer->function, ldl_be_p(wqe + 24), ldq_be_p(wqe + 16), message->bytes, message->length, false,
                           true)) {
        return RDMA_REMOTE_ACCESS;
    }
    count(peer->function, function, message->length);
    return scatter(function, wqe + 32, end, message) == message->length ? RDMA_DONE : RDMA_LOCAL_ERROR;
}

static RdmaResult write_remote(const Peer *peer, const uint8_t *wqe, const Message *message)
{
    if (message->length && !memory_key_access(peer->function, ldl_be_p(wqe + 24), ldq_be_p(wqe + 16), message->bytes,
                                              message->length, true, true)) {
        return RDMA_REMOTE_ACCESS;
    }
    return wqe[3] == WRITE ? RDMA_DONE : receive(peer, wqe, message, false, RESPONSE_WRITE_IMMEDIATE);
}

static RdmaResult transfer(Function *function, const Peer *peer, const uint8_t *wqe, const uint8_t *end, Message *message)
{
    bool has_address = wqe[3] == WRITE || wqe[3] == WRITE_IMMEDIATE;
    RdmaResult result;

    if (!gather(function, wqe + (has_address ? 32 : 16), end, message)) {
        return RDMA_LOCAL_ERROR;
    }
    if (has_address) {
        result = write_remote(peer, wqe, message);
    } else {
        result = receive(peer, wqe, message, true, wqe[3] == SEND ? RESPONSE_SEND : RESPONSE_SEND_IMMEDIATE);
    }
    if (result == RDMA_DONE) {
        count(function, peer->function, message->length);
    }
    return result;
}

/* Executes one request: a control segment of 16 bytes, for write and read the remote address, then data segments. */
RdmaResult rdma_execute(Function *function, QueuePair *pair, const uint8_t *wqe, uint32_t size, uint32_t *bytes)
{
    g_autofree uint8_t *buffer = NULL;
    const uint8_t *end = wqe + size;
    uint8_t opcode = wqe[3];
    bool sends = opcode == SEND || opcode == SEND_IMMEDIATE, addressed = opcode == WRITE || opcode == WRITE_IMMEDIATE || opcode == READ;
    Message message;
    Peer peer;

    if (opcode == NOP) {
        return RDMA_DONE;
    }
    if (!sends && (!addressed || size < 32)) {
        return RDMA_LOCAL_ERROR;
    }
    if (!find_peer(function, pair, &peer)) {
        return RDMA_UNREACHABLE;
    }
    message.length = request_length(wqe + (addressed ? 32 : 16), end);
    if (message.length == UINT32_MAX) {
        return RDMA_LOCAL_ERROR;
    }
    message.bytes = buffer = g_malloc(MAX(message.length, 1));
    *bytes = message.length;
    return opcode == READ ? read_remote(function, &peer, wqe, end, &message) : transfer(function, &peer, wqe, end, &message);
}
