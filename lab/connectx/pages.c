/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The firmware's memory comes from the driver as pages (pagealloc.c). A function's start asks for some; the PF's driver is asked for
 * those of VFs by an event, and for their return after DISABLE_HCA. Until all are back, removal of VFs waits
 * (mlx5_wait_for_pages, at most 120 s), which the order "reclaim MS" of control.c shows.
 */
#include "connectx.h"

#define BOOT_PAGES 4
#define INIT_PAGES 8

enum { QUERY_BOOT = 1, QUERY_INIT = 2 };
enum { MANAGE_CANNOT_GIVE = 0, MANAGE_GIVE = 1, MANAGE_TAKE = 2 };

/* A negative count asks for the return of pages. */
void pages_request(Function *function, uint16_t vport, int32_t count)
{
    uint8_t data[28] = { 0 };

    stw_be_p(data + 2, vport);
    stl_be_p(data + 4, count);
    event_send(function, EVENT_PAGES, 0, data);
}

typedef struct Reclaim {
    Port *port;
    uint16_t vport;
    QEMUTimer *timer;
} Reclaim;

static void reclaim_due(void *opaque)
{
    Reclaim *reclaim = opaque;
    GArray *pages = reclaim->port->pages[reclaim->vport];

    if (pages && pages->len) {
        pages_request(&reclaim->port->function, reclaim->vport, -(int32_t)pages->len);
    }
    timer_free(reclaim->timer);
    g_free(reclaim);
}

void pages_reclaim_later(Port *port, uint16_t vport)
{
    Reclaim *reclaim = g_new0(Reclaim, 1);

    reclaim->port = port;
    reclaim->vport = vport;
    reclaim->timer = timer_new_ms(QEMU_CLOCK_VIRTUAL, reclaim_due, reclaim);
    timer_mod(reclaim->timer, qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + port->reclaim_ms);
}

/* VFs ask through the PF only. */
static uint8_t query_pages(Function *function, Command *command)
{
    int32_t count = command->modifier == QUERY_BOOT ? BOOT_PAGES : command->modifier == QUERY_INIT ? INIT_PAGES : 0;

    SET(command->out, query_pages_out__function_id, function->vport);
    SET(command->out, query_pages_out__num_pages, function->vport ? 0 : count);
    return STATUS_OK;
}

static GArray *pages_of(Port *port, uint16_t number)
{
    if (!port->pages[number]) {
        port->pages[number] = g_array_new(false, false, sizeof(uint64_t));
    }
    return port->pages[number];
}

static void give(GArray *pages, const Command *command, uint32_t count)
{
    const uint8_t *addresses = command->in + OFF_manage_pages_in__pas / 8;

    for (uint32_t i = 0; i < count && addresses + 8 * i + 8 <= command->in + command->in_length; i++) {
        uint64_t address = ldq_be_p(addresses + 8 * i);

        g_array_append_val(pages, address);
    }
}

static void take(GArray *pages, Command *command, uint32_t count)
{
    uint32_t room = (command->out_length - OFF_manage_pages_out__pas / 8) / 8;
    uint32_t taken = MIN(MIN(count, room), pages->len);
    uint8_t *addresses = command->out + OFF_manage_pages_out__pas / 8;

    for (uint32_t i = 0; i < taken; i++) {
        stq_be_p(addresses + 8 * i, g_array_index(pages, uint64_t, pages->len - 1));
        g_array_set_size(pages, pages->len - 1);
    }
    SET(command->out, manage_pages_out__output_num_entries, taken);
}

/* A VF's driver gives none, and does so by a command. */
static uint8_t manage_pages(Function *function, Command *command)
{
    uint16_t number = GET(command->in, manage_pages_in__function_id);
    uint32_t count = GET(command->in, manage_pages_in__input_num_entries);

    if (function->vport ? number != function->vport || count : number > function->port->vfs) {
        return STATUS_BAD_PARAMETER;
    }
    if (command->modifier == MANAGE_GIVE) {
        give(pages_of(function->port, number), command, count);
    } else if (command->modifier == MANAGE_TAKE && command->out_length > OFF_manage_pages_out__pas / 8) {
        take(pages_of(function->port, number), command, count);
    }
    return STATUS_OK;
}

const CommandEntry page_commands[] = {
    { OP_QUERY_PAGES, query_pages },
    { OP_MANAGE_PAGES, manage_pages },
    { 0, NULL },
};
