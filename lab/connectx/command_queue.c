/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command queue: 32 entries of 64 bytes, with longer input and output in chains of mailboxes (cmd.c). */
#include "connectx.h"

#define ENTRY 64
#define LONGEST (1 * MiB)
#define BLOCK 512u

/* Delivery status in the entry's last byte (enum in cmd.c). */
enum { DELIVERY_OK = 0x0, DELIVERY_TOKEN = 0x2, DELIVERY_LENGTH = 0x7 };

/* struct mlx5_cmd_prot_block in mlx5_core.h: data, pointer to the next block, number and token. */
static bool mailboxes(Function *function, uint64_t block_address, uint8_t *buffer, uint32_t length, uint8_t token, bool write)
{
    uint8_t block[576];

    for (uint32_t number = 0; length; number++) {
        uint32_t part = MIN(length, BLOCK);

        if (!block_address || !memory_read(function, block_address, block, sizeof(block)) || block[573] != token ||
            (uint32_t)ldl_be_p(block + 568) != number) {
            return false;
        }
        if (write) {
            memory_write(function, block_address, buffer, part);
        } else {
            memcpy(buffer, block, part);
        }
        buffer += part;
        length -= part;
        block_address = ldq_be_p(block + 560);
    }
    return true;
}

static bool command_read(Function *function, const uint8_t *entry, Command *command)
{
    command->in = g_malloc0(MAX(command->in_length, PAGE) + 16);
    command->out = g_malloc0(MAX(command->out_length, 0x10000) + 16);
    memcpy(command->in, entry + 16, MIN(command->in_length, 16));
    if (command->in_length > 16 &&
        !mailboxes(function, ldq_be_p(entry + 8), command->in + 16, command->in_length - 16, entry[60], false)) {
        return false;
    }
    command->opcode = lduw_be_p(command->in);
    command->modifier = lduw_be_p(command->in + 6);
    return true;
}

static bool command_write(Function *function, uint8_t *entry, Command *command, uint8_t status)
{
    command->out[0] = status;
    if (status) {
        memset(command->out + 1, 0, 3);
        stl_be_p(command->out + 4, command->syndrome ? command->syndrome : 0xbad000u | status);
    }
    memcpy(entry + 32, command->out, 16);
    return command->out_length <= 16 ||
           mailboxes(function, ldq_be_p(entry + 48), command->out + 16, command->out_length - 16, entry[60], true);
}

/* The ownership bit, in the last byte, returns the entry to the driver. */
static void entry_complete(Function *function, unsigned slot, uint8_t *entry, uint8_t delivery)
{
    uint64_t address = function->command_queue + slot * ENTRY;

    memory_write(function, address + 32, entry + 32, 16);
    entry[63] = delivery << 1;
    memory_write(function, address + 63, entry + 63, 1);
}

/*
 * The completion of the command that creates or destroys the queue of command events is not posted to that queue: the driver
 * polls for it, and counts a second completion as one that "arrived after timeout".
 */
static void report_completion(Function *function, unsigned slot, uint32_t queue_before)
{
    EventQueue *queue = event_queue_for(function, EVENT_COMMAND);
    uint8_t data[28] = { 0 };

    if (queue && queue->resource.id == queue_before) {
        stl_be_p(data, 1u << slot);
        event_push(function, queue, EVENT_COMMAND, 0, data);
    }
}

static uint8_t execute(Function *function, Command *command, const Fault *fault)
{
    if (fault && fault->status >= 0) {
        command->syndrome = fault->syndrome;
        return fault->status;
    }
    return command_run(function, command);
}

static void answer(Function *function, unsigned slot, uint8_t *entry, Command *command, const Fault *fault)
{
    EventQueue *queue = event_queue_for(function, EVENT_COMMAND);
    uint32_t queue_before = queue ? queue->resource.id : 0;
    uint8_t status = execute(function, command, fault);
    bool written = command_write(function, entry, command, status);

    log_command(function, command, status, !written ? "mailbox" : fault ? "fault" : NULL);
    entry_complete(function, slot, entry, written ? DELIVERY_OK : DELIVERY_TOKEN);
    report_completion(function, slot, queue_before);
}

static void pending_free(Function *function, unsigned slot)
{
    Pending *pending = function->pending[slot];

    if (pending) {
        timer_free(pending->timer);
        g_free(pending);
        function->pending[slot] = NULL;
    }
}

static void slot_run(Function *function, unsigned slot, const Fault *taken);

static void pending_due(void *opaque)
{
    Pending *pending = opaque;
    Function *function = pending->function;
    unsigned slot = pending->slot;
    Fault fault = pending->fault;

    pending_free(function, slot);
    slot_run(function, slot, &fault);
}

static void postpone(Function *function, unsigned slot, const Fault *fault)
{
    Pending *pending = g_new0(Pending, 1);

    pending_free(function, slot);
    pending->function = function;
    pending->slot = slot;
    pending->fault = *fault;
    pending->timer = timer_new_ms(QEMU_CLOCK_VIRTUAL, pending_due, pending);
    function->pending[slot] = pending;
    if (!fault->never) {
        timer_mod(pending->timer, qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + fault->late_ms);
    }
}

/* Without an answer now: the command runs when its time has come, or is released. */
static bool withheld(Function *function, unsigned slot, Command *command, const Fault *fault)
{
    if (!fault->never && !fault->late_ms) {
        return false;
    }
    log_command(function, command, -1, fault->never ? "never" : "late");
    postpone(function, slot, fault);
    return true;
}

static void command_free(Command *command)
{
    g_free(command->in);
    g_free(command->out);
}

/* taken: the fault of a command whose time has come, or NULL for a new command. */
static void slot_run(Function *function, unsigned slot, const Fault *taken)
{
    uint8_t entry[ENTRY];
    Command command = { 0 };
    Fault fault;

    if (!memory_read(function, function->command_queue + slot * ENTRY, entry, ENTRY) || !(entry[63] & 1)) {
        return;
    }
    command.in_length = ldl_be_p(entry + 4);
    command.out_length = ldl_be_p(entry + 56);
    if (command.in_length < 8 || command.out_length < 8 || command.in_length > LONGEST || command.out_length > LONGEST) {
        entry_complete(function, slot, entry, DELIVERY_LENGTH);
        return;
    }
    if (!command_read(function, entry, &command)) {
        entry_complete(function, slot, entry, DELIVERY_TOKEN);
    } else if (taken || !fault_take(function, command.opcode, &fault)) {
        answer(function, slot, entry, &command, taken);
    } else if (!withheld(function, slot, &command, &fault)) {
        answer(function, slot, entry, &command, &fault);
    }
    command_free(&command);
}

/* A dead card does not look at its doorbell. */
void command_queue_ring(Function *function, uint32_t slots)
{
    for (unsigned slot = 0; slot < 32 && !function->port->dead; slot++) {
        if ((slots >> slot & 1) && !function->pending[slot]) {
            slot_run(function, slot, NULL);
        }
    }
}

/* Withheld commands run now. */
void command_queue_release(Function *function)
{
    for (unsigned slot = 0; slot < 32; slot++) {
        if (function->pending[slot]) {
            pending_due(function->pending[slot]);
        }
    }
}

/* A driver that starts knows nothing of the commands of its predecessor. */
void command_queue_forget(Function *function)
{
    for (unsigned slot = 0; slot < 32; slot++) {
        pending_free(function, slot);
    }
}

void command_queue_reset(Function *function)
{
    command_queue_forget(function);
    function->command_queue = 0;
    function->interface_state = 0;
}
