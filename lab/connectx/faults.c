/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of the firmware. Commands are matched against the list from its beginning; the first fault that fits is taken. control.c
 * reads the text.
 */
#include "connectx.h"

static bool fault_fits(const Fault *fault, const Function *function, uint16_t opcode)
{
    return (fault->opcode < 0 || fault->opcode == opcode) && (fault->function < 0 || fault->function == function->vport);
}

bool fault_take(Function *function, uint16_t opcode, Fault *taken)
{
    GArray *faults = function->port->faults;

    for (guint i = 0; i < faults->len; i++) {
        Fault *fault = &g_array_index(faults, Fault, i);

        if (!fault_fits(fault, function, opcode)) {
            continue;
        }
        *taken = *fault;
        if (fault->count > 0 && --fault->count == 0) {
            g_array_remove_index(faults, i);
        }
        return true;
    }
    return false;
}

static bool number_of(const char *text, int64_t *number)
{
    char *end;

    *number = g_ascii_strtoll(text, &end, 0);
    return *text && !*end && *number >= 0;
}

/* pf, vfN, or the number of a vport. */
bool fault_function(const char *text, int *function)
{
    bool vf = g_str_has_prefix(text, "vf");
    int64_t number;

    if (!strcmp(text, "pf")) {
        *function = 0;
        return true;
    }
    if (!number_of(vf ? text + 2 : text, &number) || number > MAX_VFS) {
        return false;
    }
    *function = vf ? number + 1 : number;
    return true;
}

static bool option_read(Fault *fault, const char *option)
{
    const char *value = strchr(option, '=');
    int64_t number = 0;

    if (!strcmp(option, "never")) {
        fault->never = true;
        return true;
    }
    if (value && g_str_has_prefix(option, "function=")) {
        return fault_function(value + 1, &fault->function);
    }
    if (!value || !number_of(value + 1, &number)) {
        return false;
    }
    if (g_str_has_prefix(option, "status=")) {
        fault->status = number & 0xff;
    } else if (g_str_has_prefix(option, "syndrome=")) {
        fault->syndrome = number;
    } else if (g_str_has_prefix(option, "late=")) {
        fault->late_ms = number;
    } else if (g_str_has_prefix(option, "count=") && number) {
        fault->count = number;
    } else {
        return false;
    }
    return true;
}

/* words: the opcode, then options. Without any other effect the command fails with an internal error. */
bool fault_add(Port *port, char **words, GString *reply)
{
    Fault fault = { .opcode = -1, .function = -1, .status = -1, .count = -1 };

    if (!words[0]) {
        g_string_append(reply, "error: name a command or *");
        return false;
    }
    if (strcmp(words[0], "*") && (fault.opcode = opcode_number(words[0])) < 0) {
        g_string_append_printf(reply, "error: unknown command %s", words[0]);
        return false;
    }
    for (char **option = words + 1; *option; option++) {
        if (!option_read(&fault, *option)) {
            g_string_append_printf(reply, "error: bad option %s", *option);
            return false;
        }
    }
    if (!fault.never && !fault.late_ms && fault.status < 0) {
        fault.status = STATUS_INTERNAL;
    }
    g_array_append_val(port->faults, fault);
    g_string_append(reply, "ok");
    return true;
}
