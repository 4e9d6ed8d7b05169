/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all kinds of queue pairs need: messages from and into the driver's memory, receive buffers, and packets by queue pair. */
#include "connectx.h"

#define LARGEST_MESSAGE (1u << 30) /* log_max_msg of the capabilities */
#define LARGEST_RECEIVE 512
#define DATA_IS_INLINE 0x80000000u
#define END_OF_LIST 0x100 /* the key of the last entry in a list of buffers (MLX5_TERMINATE_SCATTER_LIST_LKEY) */
#define RESPONSE_ERROR 14 /* opcode of completions: MLX5_CQE_RESP_ERR in include/linux/mlx5/device.h */
#define SHARED_HEADER 16

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

/* An empty message as long as the request's data segments. */
bool message_prepare(Message *message, const uint8_t *segments, const uint8_t *end)
{
    message->length = request_length(segments, end);
    if (message->length == UINT32_MAX) {
        return false;
    }
    message->bytes = g_malloc(MAX(message->length, 1));
    return true;
}

/* From the request's data segments into the message. */
bool message_gather(Function *function, uint32_t domain, const uint8_t *at, const uint8_t *end, Message *message)
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
            if (!memory_key_access(function, ldl_be_p(at + 4), domain, READ_LOCAL, ldq_be_p(at + 8), message->bytes + done,
                                   length)) {
                return false;
            }
            at += 16;
        }
        done += length;
    }
    return true;
}

/* From the message into a list of buffers. Returns how many bytes had room, or -1 if a key forbids it. */
int64_t message_scatter(Function *function, uint32_t domain, const uint8_t *at, const uint8_t *end, const Message *message)
{
    uint32_t done = 0;

    for (; at + 16 <= end && done < message->length; at += 16) {
        uint32_t room = ldl_be_p(at), key = ldl_be_p(at + 4), part = MIN(room, message->length - done);

        if (!room || key == END_OF_LIST) {
            break;
        }
        if (!memory_key_access(function, key, domain, WRITE_LOCAL, ldq_be_p(at + 8), message->bytes + done, part)) {
            return -1;
        }
        done += part;
    }
    return done;
}

static SharedQueue *shared_of(Function *function, const QueuePair *pair)
{
    return pair->shared ? resource_find(function, OP_CREATE_RMP, pair->shared) : NULL;
}

bool receive_is_ready(Function *function, const QueuePair *pair)
{
    const SharedQueue *shared = shared_of(function, pair);
    uint8_t record[4];

    if (shared) {
        return shared_queue_is_ready(function, shared);
    }
    return pair->receives && memory_read(function, pair->doorbell_record, record, 4) &&
           pair->receive_consumer != (uint16_t)ldl_be_p(record);
}

/* Puts a message into the next receive buffer, which is there. */
RdmaResult receive_fill(Function *function, const QueuePair *pair, const Message *message)
{
    const SharedQueue *shared = shared_of(function, pair);
    uint32_t stride = MIN(shared ? shared->ring.stride : pair->receive_stride, LARGEST_RECEIVE);
    uint32_t at = (pair->receive_consumer & ((1u << pair->receive_log) - 1)) * pair->receive_stride;
    uint8_t buffers[LARGEST_RECEIVE];
    int64_t filled;

    if (!(shared ? shared_queue_read(function, shared, buffers, stride) : ring_read(function, &pair->ring, at, buffers, stride))) {
        return RDMA_REMOTE_FAILURE;
    }
    filled = message_scatter(function, shared ? shared->domain : pair->domain, buffers + (shared ? SHARED_HEADER : 0),
                             buffers + stride, message);
    return filled < 0 ? RDMA_REMOTE_FAILURE : filled < message->length ? RDMA_REMOTE_TOO_SHORT : RDMA_DONE;
}

/* The entry has what only this kind of queue pair knows. */
void receive_complete(Function *function, QueuePair *pair, uint8_t opcode, uint32_t length, uint8_t entry[64])
{
    CompletionQueue *completions = resource_find(function, OP_CREATE_CQ, pair->receive_cq);
    SharedQueue *shared = shared_of(function, pair);

    stl_be_p(entry + 32, pair->user_index);
    stl_be_p(entry + 44, length);
    stl_be_p(entry + 56, pair->resource.id);
    stw_be_p(entry + 60, shared ? shared_queue_take(function, shared) : pair->receive_consumer++);
    entry[63] = opcode << 4;
    if (completions) {
        completion_push(function, completions, entry);
    }
}

/* The buffer is used, although nothing arrived in it that the program may use. */
void receive_failed(Function *function, QueuePair *pair, uint8_t syndrome)
{
    uint8_t entry[64] = { [55] = syndrome };

    receive_complete(function, pair, RESPONSE_ERROR, 0, entry);
}

static QueuePair *general_services(Function *function)
{
    GHashTableIter iterator;
    Resource *resource;

    g_hash_table_iter_init(&iterator, function->resources);
    while (g_hash_table_iter_next(&iterator, NULL, (void **)&resource)) {
        if (resource->kind == OP_CREATE_QP && ((QueuePair *)resource)->service == SERVICE_GENERAL) {
            return (QueuePair *)resource;
        }
    }
    return NULL;
}

/* Each kind of queue pair checks the rest of the packet. */
void rdma_receive(Function *function, const RdmaPacket *packet)
{
    uint32_t number = ldl_be_p(packet->bytes + PACKET_DESTINATION) & 0xffffff;
    QueuePair *pair = number == GENERAL_SERVICES ? general_services(function) : resource_find(function, OP_CREATE_QP, number);

    if (packet->length < PACKET_HEADER || !pair || (pair->state != QP_RTR && pair->state != QP_RTS)) {
        return;
    }
    if (pair->service == SERVICE_RELIABLE) {
        reliable_receive(function, pair, packet);
    } else if (pair->service == SERVICE_DATAGRAM || pair->service == SERVICE_GENERAL) {
        datagram_receive(function, pair, packet);
    }
}

/* The base transport header. */
void packet_begin(RdmaPacket *packet, uint8_t opcode, uint32_t destination, uint32_t psn, bool acknowledge)
{
    memset(packet, 0, offsetof(RdmaPacket, bytes) + PACKET_HEADER);
    packet->bytes[PACKET_OPCODE] = opcode;
    stw_be_p(packet->bytes + 2, DEFAULT_PARTITION);
    stl_be_p(packet->bytes + PACKET_DESTINATION, destination);
    stl_be_p(packet->bytes + PACKET_NUMBER, (uint32_t)acknowledge << 31 | (psn & 0xffffff));
    packet->length = PACKET_HEADER;
}

/* The data at the end is filled up to a multiple of four bytes. */
void packet_append_data(RdmaPacket *packet, const uint8_t *bytes, uint32_t length)
{
    uint32_t padding = -length & 3;

    memcpy(packet->bytes + packet->length, bytes, length);
    memset(packet->bytes + packet->length + length, 0, padding);
    packet->bytes[1] = padding << 4;
    packet->length += length + padding;
}

/* The length of the data that begins at this place of a received packet. */
uint32_t packet_data_length(const RdmaPacket *packet, uint32_t at)
{
    uint32_t padding = packet->bytes[1] >> 4 & 3;

    return packet->length >= at + padding ? packet->length - at - padding : 0;
}
