/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA packets that are lost on their way, by the order `lose`, and what the ends of a reliable connection count of it (Q counters:
 * counters.c in drivers/infiniband/hw/mlx5). A function has one set of these counters.
 */
#include "connectx.h"

static bool number_of(const char *text, uint64_t *number)
{
    char *end;

    *number = g_ascii_strtoull(text, &end, 10);
    return end != text && !*end && *number;
}

/* EVERY [count=N]: of the packets that this port's functions send one in EVERY is lost, N in all, otherwise until `clear`. */
bool loss_order(Port *port, char **words)
{
    uint64_t every, left = UINT64_MAX;

    if (!words[0] || !number_of(words[0], &every) ||
        (words[1] && (words[2] || !g_str_has_prefix(words[1], "count=") || !number_of(words[1] + strlen("count="), &left)))) {
        return false;
    }
    port->loss = (Loss){ .every = every, .left = left, .random = 1, .lost = port->loss.lost };
    return true;
}

void loss_clear(Port *port)
{
    port->loss.left = 0;
}

/*
 * Whether the packet that is being sent is lost: at random, and the same ones after each order (a linear congruential generator with
 * Knuth's MMIX constants). With a fixed distance, an answer of as many packets could be sent again for ever and lose its first one.
 */
bool loss_takes(Port *port)
{
    Loss *loss = &port->loss;

    if (!loss->left) {
        return false;
    }
    loss->random = loss->random * 6364136223846793005ULL + 1442695040888963407ULL;
    if ((loss->random >> 33) % loss->every) {
        return false;
    }
    loss->left--;
    loss->lost++;
    return true;
}

static uint8_t allocate(Function *function, Command *command)
{
    SET(command->out, alloc_q_counter_out__counter_set_id, 1 + function->vport % 200);
    return STATUS_OK;
}

static uint8_t query(Function *function, Command *command)
{
    const uint32_t *counted = function->counted;

    SET(command->out, query_q_counter_out__out_of_sequence, counted[OUT_OF_SEQUENCE]);
    SET(command->out, query_q_counter_out__duplicate_request, counted[DUPLICATE_REQUEST]);
    SET(command->out, query_q_counter_out__packet_seq_err, counted[PACKET_SEQUENCE_ERROR]);
    SET(command->out, query_q_counter_out__local_ack_timeout_err, counted[ACKNOWLEDGEMENT_TIMEOUT]);
    return STATUS_OK;
}

const CommandEntry loss_commands[] = {
    { OP_ALLOC_Q_COUNTER, allocate },
    { OP_DEALLOC_Q_COUNTER, command_accept },
    { OP_QUERY_Q_COUNTER, query },
    { 0, NULL },
};
