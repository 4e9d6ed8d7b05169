/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs (qp.c in drivers/infiniband/hw/mlx5). Reliable connections (reliable.c) and datagrams (datagram.c) transfer data;
 * requests of other types complete and go nowhere. In the error state everything is flushed: drivers drain their queues when they
 * unbind, and would wait for ever.
 */
#include "connectx.h"

#define BLOCK 64
#define FLUSH_MS 10
#define EVENT_LAST_BUFFER 0x13
#define SHARED 1 /* the type of receive queue: MLX5_SRQ_RQ in include/linux/mlx5/qp.h */
#define NOP 0
#define KEY_UPDATE 0x25
#define COMPLETION_WANTED 0x8
#define COMPLETION_MASK 0xc
/* Opcodes and syndromes of completions (MLX5_CQE_*, MLX5_CQE_SYNDROME_* in include/linux/mlx5/device.h). */
enum { COMPLETED = 0, REQUEST_ERROR = 13, RESPONSE_ERROR = 14 };
enum { SYNDROME_LOCAL_PROTECTION = 0x4, SYNDROME_FLUSHED = 0x5, SYNDROME_KEY_REFUSED = 0x6,
       SYNDROME_REMOTE_REQUEST = 0x12,
       SYNDROME_REMOTE_ACCESS = 0x13, SYNDROME_REMOTE_OPERATION = 0x14, SYNDROME_RETRIES = 0x15, SYNDROME_RECEIVER_BUSY = 0x16 };

static void queue_pair_destroy(Resource *resource)
{
    QueuePair *pair = (QueuePair *)resource;

    ring_free(&pair->ring);
    request_end(pair);
    g_byte_array_unref(pair->response.message);
}

static void push(Function *function, const QueuePair *pair, uint32_t queue, uint16_t counter, uint32_t bytes, uint8_t wqe_opcode,
                 uint8_t opcode, uint8_t syndrome)
{
    CompletionQueue *completions = resource_find(function, OP_CREATE_CQ, queue);
    uint8_t entry[64] = { 0 };

    if (!completions) {
        return;
    }
    stl_be_p(entry + 32, pair->user_index);
    stl_be_p(entry + 44, bytes);
    stl_be_p(entry + 56, (uint32_t)wqe_opcode << 24 | pair->resource.id);
    stw_be_p(entry + 60, counter);
    entry[55] = syndrome;
    entry[63] = opcode << 4;
    completion_push(function, completions, entry);
}

/* One timer serves all queue pairs of a function: an earlier look stays. */
void queue_pair_look_again(Function *function, int64_t after_ms)
{
    timer_mod_anticipate(function->retry, qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + after_ms);
}

static void send_event(Function *function, const QueuePair *pair, uint8_t event)
{
    uint8_t data[28] = { 0 };

    stl_be_p(data + 24, pair->resource.id);
    event_send(function, event, 0, data);
}

/* The driver waits for the event before it destroys a queue pair with a shared receive queue, whose buffers are not flushed. */
static void enter_error(Function *function, QueuePair *pair)
{
    pair->state = QP_ERROR;
    queue_pair_look_again(function, FLUSH_MS);
    if (pair->shared) {
        send_event(function, pair, EVENT_LAST_BUFFER);
    }
}

/* No event is sent for 0: the driver learns of the failure by a completion. */
void queue_pair_fail(Function *function, QueuePair *pair, uint8_t event)
{
    if (event) {
        send_event(function, pair, event);
    }
    enter_error(function, pair);
}

static uint8_t syndrome_of(RdmaResult result)
{
    switch (result) {
    case RDMA_UNREACHABLE:
        return SYNDROME_RETRIES;
    case RDMA_RECEIVER_BUSY:
        return SYNDROME_RECEIVER_BUSY;
    case RDMA_KEY_REFUSED:
        return SYNDROME_KEY_REFUSED;
    case RDMA_REMOTE_ACCESS:
        return SYNDROME_REMOTE_ACCESS;
    case RDMA_REMOTE_TOO_SHORT:
        return SYNDROME_REMOTE_REQUEST;
    case RDMA_REMOTE_FAILURE:
        return SYNDROME_REMOTE_OPERATION;
    default:
        return SYNDROME_LOCAL_PROTECTION;
    }
}

/* The size of a request is in its second double word, in units of 16 bytes. */
static uint32_t read_request(Function *function, const QueuePair *pair, uint8_t *wqe)
{
    uint32_t at = pair->send_consumer * BLOCK, bytes = BLOCK << pair->ring.log_size, size;

    if (!ring_read_wrapped(function, &pair->ring, pair->send_offset, bytes, at, wqe, 16)) {
        return 0;
    }
    size = MAX(16, (ldl_be_p(wqe + 4) & 0x3f) * 16);
    return ring_read_wrapped(function, &pair->ring, pair->send_offset, bytes, at, wqe, size) ? size : 0;
}

static void log_request_failure(Function *function, const QueuePair *pair, uint8_t opcode, uint8_t syndrome)
{
    g_autofree char *text = g_strdup_printf("vport %u queue pair 0x%x opcode 0x%x failed with syndrome 0x%x", function->vport,
                                            pair->resource.id, opcode, syndrome);

    log_line(function->port, text);
}

static void finish(Function *function, QueuePair *pair, const uint8_t *wqe, uint32_t size, RdmaResult result, uint32_t bytes)
{
    uint16_t counter = pair->send_consumer;

    pair->send_consumer += DIV_ROUND_UP(size, BLOCK);
    if (pair->state == QP_ERROR) {
        push(function, pair, pair->send_cq, counter, 0, 0, REQUEST_ERROR, SYNDROME_FLUSHED);
    } else if (result != RDMA_DONE) {
        log_request_failure(function, pair, wqe[3], syndrome_of(result));
        push(function, pair, pair->send_cq, counter, 0, wqe[3], REQUEST_ERROR, syndrome_of(result));
        queue_pair_fail(function, pair, 0);
    } else if ((wqe[11] & COMPLETION_MASK) == COMPLETION_WANTED) {
        push(function, pair, pair->send_cq, counter, bytes, wqe[3], COMPLETED, 0);
    }
}

/* A queue pair in the error state executes nothing; what its request had under way is forgotten. */
static RdmaResult execute(Function *function, QueuePair *pair)
{
    Request *request = &pair->request;

    if (pair->state != QP_RTS || request->wqe[3] == NOP) {
        return RDMA_DONE;
    }
    if (request->wqe[3] == KEY_UPDATE) {
        return key_update(function, pair->domain, request->wqe, request->size);
    }
    if (pair->service == SERVICE_RELIABLE) {
        if (!request->active) {
            request->active = true;
            reliable_begin(function, pair);
        }
        return reliable_advance(function, pair);
    }
    if (pair->service == SERVICE_DATAGRAM || pair->service == SERVICE_GENERAL) {
        return datagram_send(function, pair, request->wqe, request->size);
    }
    return RDMA_DONE;
}

/* Returns false if the request stays at the head of the queue. */
static bool run_next(Function *function, QueuePair *pair)
{
    Request *request = &pair->request;
    RdmaResult result;

    if (!request->active) {
        request->size = read_request(function, pair, request->wqe);
        if (!request->size) {
            return false;
        }
    }
    result = execute(function, pair);
    if (result == RDMA_WAITING) {
        return false;
    }
    finish(function, pair, request->wqe, request->size, result, request->message.length);
    request_end(pair);
    return true;
}

/*
 * The doorbell record has the receive counter, then the send counter. On one card an answer arrives while its request is being
 * sent, and finds the queue running.
 */
void queue_pair_ring(Function *function, QueuePair *pair)
{
    uint8_t record[8];
    uint16_t sent, received;

    if (pair->running || !migration_sends(function) || !memory_read(function, pair->doorbell_record, record, sizeof(record))) {
        return;
    }
    pair->running = true;
    received = ldl_be_p(record);
    sent = ldl_be_p(record + 4);
    for (unsigned guard = 0; pair->sends && (pair->state == QP_RTS || pair->state == QP_ERROR) &&
                             pair->send_consumer != sent && guard <= UINT16_MAX; guard++) {
        if (!run_next(function, pair)) {
            break;
        }
    }
    while (pair->receives && pair->state == QP_ERROR && pair->receive_consumer != received) {
        push(function, pair, pair->receive_cq, pair->receive_consumer++, 0, 0, RESPONSE_ERROR, SYNDROME_FLUSHED);
    }
    pair->running = false;
}

static GPtrArray *waiting_pairs(Function *function)
{
    GPtrArray *waiting = g_ptr_array_new();
    GHashTableIter iterator;
    Resource *resource;

    g_hash_table_iter_init(&iterator, function->resources);
    while (g_hash_table_iter_next(&iterator, NULL, (void **)&resource)) {
        QueuePair *pair = (QueuePair *)resource;

        if (resource->kind == OP_CREATE_QP &&
            (pair->state == QP_ERROR || (pair->state == QP_RTS && pair->service == SERVICE_RELIABLE))) {
            g_ptr_array_add(waiting, pair);
        }
    }
    return waiting;
}

/* Receive buffers have no doorbell register: those that are posted to a queue pair in the error state are found by looking. */
void queue_pair_retry(void *opaque)
{
    Function *function = opaque;
    g_autoptr(GPtrArray) waiting = waiting_pairs(function);

    for (guint i = 0; i < waiting->len; i++) {
        QueuePair *pair = waiting->pdata[i];

        queue_pair_ring(function, pair);
        if (pair->state == QP_ERROR && !timer_pending(function->retry)) {
            queue_pair_look_again(function, FLUSH_MS);
        }
    }
}

static void setup(QueuePair *pair)
{
    const uint8_t *context = AT(pair->resource.in, create_qp_in__qpc);
    uint32_t receive_bytes;

    pair->receives = GET(context, qpc__rq_type) == 0;
    pair->shared = GET(context, qpc__rq_type) == SHARED ? GET(context, qpc__srqn_rmpn_xrqn) : 0;
    pair->sends = !GET(context, qpc__no_sq);
    pair->service = GET(context, qpc__st);
    pair->receive_log = GET(context, qpc__log_rq_size);
    pair->receive_stride = 16u << GET(context, qpc__log_rq_stride);
    receive_bytes = pair->receives ? pair->receive_stride << pair->receive_log : 0;
    pair->send_offset = receive_bytes;
    pair->ring.log_size = pair->sends ? GET(context, qpc__log_sq_size) : 0;
    pair->send_cq = GET(context, qpc__cqn_snd);
    pair->receive_cq = GET(context, qpc__cqn_rcv);
    /* The driver gives its queue pair for registration none (_create_kernel_qp in qp.c). */
    pair->domain = pair->service == SERVICE_REGISTRATION ? EVERY_DOMAIN : GET(context, qpc__pd);
    pair->user_index = GET(context, qpc__user_index);
    pair->doorbell_record = GET(context, qpc__dbr_addr);
    ring_init(&pair->ring, &pair->resource, AT(pair->resource.in, create_qp_in__pas),
              receive_bytes + (pair->sends ? BLOCK << pair->ring.log_size : 0), GET(context, qpc__log_page_size) + 12,
              GET(context, qpc__page_offset));
}

static uint8_t create(Function *function, Command *command)
{
    QueuePair *pair = resource_new(function, command, 0, sizeof(*pair), queue_pair_destroy);

    setup(pair);
    pair->response.message = g_byte_array_new();
    SET(command->out, create_qp_out__qpn, pair->resource.id);
    return STATUS_OK;
}

static uint8_t destroy(Function *function, Command *command)
{
    resource_delete(function, OP_CREATE_QP, command_id(command));
    return STATUS_OK;
}

static uint8_t query(Function *function, Command *command)
{
    QueuePair *pair = resource_find(function, OP_CREATE_QP, command_id(command));

    if (!pair) {
        return STATUS_BAD_RESOURCE;
    }
    memcpy(AT(command->out, query_qp_out__qpc), AT(pair->resource.in, create_qp_in__qpc), LEN_create_qp_in__qpc / 8);
    SET(command->out, query_qp_out__qpc__state, pair->state);
    return STATUS_OK;
}

/* The values of enum ib_mtu: 1 is 256 bytes, 5 is 4096. */
static uint32_t mtu_of(uint32_t value)
{
    return 128u << MIN(MAX(value, 1), 5);
}

static void connect_to(QueuePair *pair, const uint8_t *context)
{
    Path *path = &pair->path;

    pair->remote = GET(context, qpc__remote_qpn);
    pair->mtu = mtu_of(GET(context, qpc__mtu));
    pair->response.expected = GET(context, qpc__next_rcv_psn);
    pair->busy_code = GET(context, qpc__min_rnr_nak);
    memcpy(path->mac, AT(context, qpc__primary_address_path__rmac_47_32), sizeof(path->mac));
    memcpy(path->gid, AT(context, qpc__primary_address_path__rgid_rip), sizeof(path->gid));
    path->source = GET(context, qpc__primary_address_path__src_addr_index);
    path->traffic_class = GET(context, qpc__primary_address_path__tclass);
    path->hops = GET(context, qpc__primary_address_path__hop_limit);
    path->udp_source = GET(context, qpc__primary_address_path__udp_sport);
    path->lid = GET(context, qpc__primary_address_path__rlid);
}

static void reset(QueuePair *pair)
{
    pair->send_consumer = pair->receive_consumer = 0;
    request_end(pair);
    pair->response.messages = 0;
    pair->response.complained = false;
}

/* What the other end may ask for comes with the first transition, and with others that name it (enum mlx5_qp_optpar). */
static void take_rights(QueuePair *pair, const Command *command, const uint8_t *context)
{
    uint32_t named = command->opcode == OP_RST2INIT_QP ? ~0u : GET(command->in, init2rtr_qp_in__opt_param_mask);

    pair->remote_read = named & 1 << 1 ? GET(context, qpc__rre) : pair->remote_read;
    pair->remote_atomic = named & 1 << 2 ? GET(context, qpc__rae) : pair->remote_atomic;
    pair->remote_write = named & 1 << 3 ? GET(context, qpc__rwe) : pair->remote_write;
    pair->busy_code = named & 1 << 6 ? GET(context, qpc__min_rnr_nak) : pair->busy_code;
}

/* Each transition brings those attributes that the next state needs. */
static void take_attributes(QueuePair *pair, const Command *command)
{
    const uint8_t *context = AT(command->in, init2rtr_qp_in__qpc);

    if (command->opcode != OP_2RST_QP && command->opcode != OP_2ERR_QP) {
        take_rights(pair, command, context);
    }
    switch (command->opcode) {
    case OP_RST2INIT_QP:
    case OP_INIT2INIT_QP:
        pair->key = GET(context, qpc__q_key);
        pair->path.key_index = GET(context, qpc__primary_address_path__pkey_index);
        break;
    case OP_INIT2RTR_QP:
        connect_to(pair, context);
        break;
    case OP_RTR2RTS_QP:
        pair->next_psn = GET(context, qpc__next_send_psn);
        pair->busy_retries = GET(context, qpc__rnr_retry);
        pair->retries = GET(context, qpc__retry_count);
        pair->timeout = GET(context, qpc__primary_address_path__ack_timeout);
        break;
    case OP_RTS2RTS_QP: /* IPoIB learns the Q_Key when it joins its broadcast group */
        if (GET(command->in, init2rtr_qp_in__opt_param_mask) & 1 << 5) {
            pair->key = GET(context, qpc__q_key);
        }
        break;
    case OP_2RST_QP:
        reset(pair);
        break;
    case OP_2ERR_QP:
        request_end(pair);
        break;
    }
}

static uint8_t next_state(uint16_t opcode)
{
    switch (opcode) {
    case OP_2RST_QP:
        return QP_RESET;
    case OP_RST2INIT_QP:
    case OP_INIT2INIT_QP:
        return QP_INIT;
    case OP_INIT2RTR_QP:
        return QP_RTR;
    case OP_2ERR_QP:
        return QP_ERROR;
    default:
        return QP_RTS;
    }
}

static uint8_t modify(Function *function, Command *command)
{
    QueuePair *pair = resource_find(function, OP_CREATE_QP, command_id(command));

    if (!pair) {
        return STATUS_BAD_RESOURCE;
    }
    take_attributes(pair, command);
    pair->state = next_state(command->opcode);
    if (pair->state == QP_ERROR) {
        enter_error(function, pair);
    }
    queue_pair_ring(function, pair);
    return STATUS_OK;
}

const CommandEntry queue_pair_commands[] = {
    { OP_CREATE_QP, create },
    { OP_DESTROY_QP, destroy },
    { OP_QUERY_QP, query },
    { OP_RST2INIT_QP, modify },
    { OP_INIT2INIT_QP, modify },
    { OP_INIT2RTR_QP, modify },
    { OP_RTR2RTS_QP, modify },
    { OP_RTS2RTS_QP, modify },
    { OP_SQD_RTS_QP, modify },
    { OP_2ERR_QP, modify },
    { OP_2RST_QP, modify },
    { 0, NULL },
};
