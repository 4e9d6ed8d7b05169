/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log: a line for each command, "SECONDS FUNCTION NAME STATUS modifier=M [syndrome=S] [fault|late|never|mailbox]". FUNCTION is
 * pf or vfN, STATUS is ok, a number, or - without an answer.
 */
#include "connectx.h"

void log_open(Port *port)
{
    if (port->log_path) {
        port->log = fopen(port->log_path, "w");
    }
}

static double seconds(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) / 1e9;
}

void log_line(Port *port, const char *text)
{
    if (port->log) {
        fprintf(port->log, "%.3f - %s\n", seconds(), text);
        fflush(port->log);
    }
}

static void print_function(const Function *function, FILE *log)
{
    if (function->vport) {
        fprintf(log, "vf%u ", function->vport - 1u);
    } else {
        fputs("pf ", log);
    }
}

static void print_status(const Command *command, int status, FILE *log)
{
    if (status < 0) {
        fputs(" -", log);
    } else if (!status) {
        fputs(" ok", log);
    } else {
        fprintf(log, " 0x%x", status);
    }
    fprintf(log, " modifier=0x%x", command->modifier);
    if (status > 0) {
        fprintf(log, " syndrome=0x%x", command->syndrome ? command->syndrome : 0xbad000u | (unsigned)status);
    }
}

/* A negative status: no answer yet. */
void log_command(Function *function, const Command *command, int status, const char *remark)
{
    FILE *log = function->port->log;

    function->port->commands[command->opcode & 0xfff]++;
    if (!log) {
        return;
    }
    fprintf(log, "%.3f ", seconds());
    print_function(function, log);
    fprintf(log, "%s", opcode_name(command->opcode));
    if (command->opcode == OP_ACCESS_REG) {
        fprintf(log, ":%04x", (unsigned)GET(command->in, access_register_in__register_id));
    }
    print_status(command, status, log);
    fprintf(log, "%s%s\n", remark ? " " : "", remark ? remark : "");
    fflush(log);
}
