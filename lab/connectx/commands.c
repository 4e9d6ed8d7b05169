/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands by opcode. The names come from the kernel's mlx5_ifc.h. */
#include "connectx.h"

static const struct {
    uint16_t opcode;
    const char *name;
} opcodes[] = {
#include "opcodes.h"
};

static const CommandEntry *const tables[] = {
    boot_commands,
    capability_commands,
    page_commands,
    access_register_commands,
    resource_commands,
    memory_key_commands,
    event_queue_commands,
    completion_queue_commands,
    vport_commands,
    vport_context_commands,
    infiniband_commands,
    flow_table_commands,
    work_queue_commands,
    queue_pair_commands,
    multicast_commands,
    shared_queue_commands,
    loss_commands,
    migration_commands,
};

const char *opcode_name(uint16_t opcode)
{
    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        if (opcodes[i].opcode == opcode) {
            return opcodes[i].name;
        }
    }
    return "UNKNOWN";
}

/* For what has no effect that the model shows. */
uint8_t command_accept(Function *function, Command *command)
{
    (void)function;
    (void)command;
    return STATUS_OK;
}

/* A name or a number; -1 for neither. */
int opcode_number(const char *name)
{
    char *end;
    long number = strtol(name, &end, 0);

    if (*name && !*end && number >= 0 && number < 0x1000) {
        return number;
    }
    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        if (!g_ascii_strcasecmp(opcodes[i].name, name)) {
            return opcodes[i].opcode;
        }
    }
    return -1;
}

uint8_t command_run(Function *function, Command *command)
{
    for (size_t table = 0; table < ARRAY_SIZE(tables); table++) {
        for (const CommandEntry *entry = tables[table]; entry->run; entry++) {
            if (entry->opcode == command->opcode) {
                return entry->run(function, command);
            }
        }
    }
    return STATUS_BAD_OPCODE;
}
