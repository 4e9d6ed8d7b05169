/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How faults are ordered while the machine runs. From inside it: the window in the PF's configuration space. From outside: lines
 * that are appended to the file of the property control=.
 */
#include "connectx.h"

#include "window.h"

#define POLL_MS 100

/* Of the cable, or of the subnet manager. */
static bool state_set(Port *port, bool *up, const char *state)
{
    if (!state || (strcmp(state, "up") && strcmp(state, "down"))) {
        return false;
    }
    *up = !strcmp(state, "up");
    if (!port->subnet_manager) {
        g_array_set_size(port->groups, 0);
    }
    port_link_changed(port);
    return true;
}

static void count_report(Port *port, const char *name, GString *reply)
{
    int opcode = name ? opcode_number(name) : -1;

    if (opcode < 0) {
        g_string_append_printf(reply, "error: unknown command %s", name ? name : "");
    } else {
        g_string_append_printf(reply, "%u", port->commands[opcode]);
    }
}

/* The counters of a function stand still, although it sends and receives. */
static bool freeze(Port *port, const char *name)
{
    int number;

    if (!name || !fault_function(name, &number)) {
        return false;
    }
    port->vport[number].frozen = true;
    return true;
}

static void clear(Port *port)
{
    g_array_set_size(port->faults, 0);
    loss_clear(port);
    port->reclaim_ms = 0;
    for (unsigned number = 0; number <= MAX_VFS; number++) {
        port->vport[number].frozen = false;
    }
    for (unsigned number = 0; number <= port->vfs; number++) {
        Function *function = function_of_vport(port, number);

        if (function) {
            command_queue_release(function);
        }
    }
}

static void words_run(Port *port, char **words, GString *reply)
{
    const char *verb = words[0] ? words[0] : "", *value = words[0] ? words[1] : NULL;

    if (!strcmp(verb, "fault")) {
        fault_add(port, words + 1, reply);
        return;
    }
    if (!strcmp(verb, "count")) {
        count_report(port, value, reply);
        return;
    }
    if (!strcmp(verb, "partition")) {
        g_string_append(reply, subnet_list_order(port, words + 1) ? "ok" : "error: not a rule of a partition");
        return;
    }
    if (!strcmp(verb, "lose")) {
        g_string_append(reply, loss_order(port, words + 1) ? "ok" : "error: lose EVERY [count=N], both at least 1");
        return;
    }
    if (!strcmp(verb, "lost")) {
        g_string_append_printf(reply, "%" PRIu64, port->loss.lost);
        return;
    }
    if (!strcmp(verb, "clear")) {
        clear(port);
    } else if (!strcmp(verb, "reclaim") && value) {
        port->reclaim_ms = g_ascii_strtoull(value, NULL, 0);
    } else if (!strcmp(verb, "die")) {
        health_die(port, value ? g_ascii_strtoull(value, NULL, 0) : 1);
    } else if (!strcmp(verb, "recover")) {
        health_recover(port);
    } else if (!(!strcmp(verb, "link") && state_set(port, &port->cable, value)) &&
               !(!strcmp(verb, "subnet-manager") && state_set(port, &port->subnet_manager, value)) &&
               !(!strcmp(verb, "freeze") && freeze(port, value))) {
        g_string_append_printf(reply, "error: unknown order %s", verb);
        return;
    }
    g_string_append(reply, "ok");
}

/* Runs a line; the caller frees the reply. */
char *control_run(Port *port, const char *line)
{
    GString *reply = g_string_new(NULL);
    g_autofree char *squeezed = g_strstrip(g_strdup(line));
    g_auto(GStrv) words = g_strsplit_set(squeezed, " \t", -1);
    unsigned kept = 0;

    for (unsigned i = 0; words[i]; i++) { /* without the empty words between two spaces */
        if (*words[i]) {
            char *word = words[i];

            words[i] = words[kept];
            words[kept++] = word;
        }
    }
    for (unsigned i = kept; words[i]; i++) {
        g_free(words[i]);
        words[i] = NULL;
    }
    words_run(port, words, reply);
    log_line(port, squeezed);
    return g_string_free(reply, false);
}

void control_config_write(Port *port, uint32_t address, int length)
{
    PCIDevice *device = &port->function.device;
    g_autofree char *line = window_line(device, address, length);

    if (line) {
        g_autofree char *reply = control_run(port, line);

        window_reply(device, reply);
    }
}

/* Runs the whole lines that were appended since the last look. A file that became shorter is read from its beginning. */
static void control_poll(void *opaque)
{
    Port *port = opaque;
    g_autofree char *text = NULL;
    gsize length = 0;

    if (g_file_get_contents(port->control_path, &text, &length, NULL)) {
        char *line = text, *end;

        if ((gsize)port->control_offset > length) {
            port->control_offset = 0;
        }
        for (line += port->control_offset; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            g_free(control_run(port, line));
        }
        port->control_offset = line - text;
    }
    timer_mod(port->control_timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + POLL_MS);
}

void control_init(Port *port)
{
    port->members = subnet_list_new();
    port->groups = subnet_groups_new();
    window_init(&port->function.device);
    if (port->control_path) {
        port->control_timer = timer_new_ms(QEMU_CLOCK_REALTIME, control_poll, port);
        timer_mod(port->control_timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + POLL_MS);
    }
}
