/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame's way through the flow tables. */
#include "connectx.h"

#define CRITERIA 512
#define DEEPEST 40
/* Actions and destinations (MLX5_FLOW_CONTEXT_ACTION_* and enum mlx5_ifc_flow_destination_type in mlx5_ifc.h). */
enum { ACTION_DROP = 0x2, ACTION_FORWARD = 0x4, ACTION_POP = 0x80, ACTION_PUSH = 0x100 };
enum { TO_VPORT = 0, TO_TABLE = 1, TO_TIR = 2, TO_UPLINK = 8 };
#define MISS_GOES_TO_TABLE 1

typedef struct Lookup {
    const FlowTable *table;
    const Frame *frame;
    uint8_t *found;
} Lookup;

/* Entries are visited in the order of their index; the first that fits is taken. */
static gboolean entry_fits(gpointer index, gpointer entry, gpointer opaque)
{
    Lookup *lookup = opaque;
    uint32_t group = GET((uint8_t *)entry, flow_context__group_id);
    const uint8_t *mask = g_hash_table_lookup(lookup->table->groups, GUINT_TO_POINTER(group));
    const uint8_t *value = AT((uint8_t *)entry, flow_context__match_value);

    (void)index;
    if (!mask) {
        return false;
    }
    for (int i = 0; i < CRITERIA; i++) {
        if ((lookup->frame->match[i] ^ value[i]) & mask[i]) {
            return false;
        }
    }
    lookup->found = entry;
    return true;
}

static uint8_t *entry_for(const FlowTable *table, const Frame *frame)
{
    Lookup lookup = { table, frame, NULL };

    g_tree_foreach(table->entries, entry_fits, &lookup);
    return lookup.found;
}

static FlowTable *table_after_miss(Function *function, const FlowTable *table)
{
    const uint8_t *context = AT(table->resource.in, create_flow_table_in__flow_table_context);

    if (GET(context, flow_table_context__table_miss_action) != MISS_GOES_TO_TABLE) {
        return NULL;
    }
    return resource_find(function, OP_CREATE_FLOW_TABLE, GET(context, flow_table_context__table_miss_id));
}

static void add_vport(Verdict *verdict, uint16_t vport)
{
    if (verdict->vport_count < ARRAY_SIZE(verdict->vports)) {
        verdict->vports[verdict->vport_count++] = vport;
    }
}

static void add_tir(Verdict *verdict, uint32_t tir)
{
    if (verdict->tir_count < ARRAY_SIZE(verdict->tirs)) {
        verdict->tirs[verdict->tir_count++] = tir;
    }
}

static void walk(Function *function, FlowTable *table, const Frame *frame, Verdict *verdict, unsigned depth);

/* Returns the last table among the destinations, where the walk goes on; earlier ones are walked here. */
static FlowTable *destinations(Function *function, const uint8_t *entry, const Frame *frame, Verdict *verdict, unsigned depth)
{
    uint32_t count = GET(entry, flow_context__destination_list_size);
    const uint8_t *destination = AT(entry, flow_context__destination);
    FlowTable *next = NULL;

    for (uint32_t i = 0; i < count; i++, destination += 8) {
        uint32_t id = ldl_be_p(destination) & 0xffffff;

        switch (destination[0]) {
        case TO_VPORT:
            add_vport(verdict, id);
            break;
        case TO_UPLINK:
            add_vport(verdict, VPORT_UPLINK);
            break;
        case TO_TIR:
            add_tir(verdict, id);
            break;
        case TO_TABLE:
            if (next) {
                walk(function, next, frame, verdict, depth);
            }
            next = resource_find(function, OP_CREATE_FLOW_TABLE, id);
            break;
        }
    }
    return next;
}

static void note_tags(const uint8_t *entry, uint32_t action, Verdict *verdict)
{
    if (action & ACTION_PUSH) {
        verdict->push = true;
        verdict->tag = lduw_be_p(entry + 2); /* the second half of push_vlan: priority and VLAN */
    }
    if (action & ACTION_POP) {
        verdict->pop = true;
    }
}

static void walk(Function *function, FlowTable *table, const Frame *frame, Verdict *verdict, unsigned depth)
{
    while (table && depth++ < DEEPEST) {
        const uint8_t *entry = entry_for(table, frame);
        uint32_t action;

        if (!entry) {
            table = table_after_miss(function, table);
            continue;
        }
        action = GET(entry, flow_context__action);
        verdict->matched = true;
        if (action & ACTION_DROP) {
            verdict->dropped = true;
            return;
        }
        note_tags(entry, action, verdict);
        table = action & ACTION_FORWARD ? destinations(function, entry, frame, verdict, depth) : NULL;
    }
}

void flow_walk(Function *function, FlowTable *table, const Frame *frame, Verdict *verdict)
{
    walk(function, table, frame, verdict, 0);
}
