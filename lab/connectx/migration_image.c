/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The image of a function: its objects, each with the command that created it and what it has done since. The command is executed again
 * when the image is loaded, and the object gets its old number. Parts of structures are copied as they are, so an image fits only the
 * same build of the model, as that of a card fits only certain firmware. What the PF's driver sets for a VF (MAC, GUIDs, VLAN, link)
 * is the host's and not in it.
 */
#include "connectx.h"

#define MAGIC "connectx"

typedef struct State {
    char magic[8];
    uint32_t layout, resources, roots, next_id, interface_state;
    uint64_t command_queue;
    bool initialized, uar_used[PF_BAR / PAGE];
    uint8_t gid[GIDS][32];
    Vport vport;
} State;

typedef struct Reader {
    const uint8_t *at, *end;
} Reader;

/* What has become of an object since it was created: its structure from the first such member on. */
static const struct {
    uint32_t kind;
    size_t from, to;
} parts[] = {
    { OP_CREATE_EQ, offsetof(EventQueue, producer), sizeof(EventQueue) },
    { OP_CREATE_CQ, offsetof(CompletionQueue, producer), sizeof(CompletionQueue) },
    { OP_CREATE_SQ, offsetof(WorkQueue, consumer), sizeof(WorkQueue) },
    { OP_CREATE_RQ, offsetof(WorkQueue, consumer), sizeof(WorkQueue) },
    { OP_CREATE_RMP, offsetof(SharedQueue, head), sizeof(SharedQueue) },
    { OP_CREATE_QP, offsetof(QueuePair, receive_log), sizeof(QueuePair) },
};

static uint32_t layout(void)
{
    uint32_t sum = sizeof(State);

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        sum = sum * 31 + parts[i].to;
    }
    return sum;
}

static void put(GByteArray *image, const void *bytes, uint32_t length)
{
    if (length) {
        g_byte_array_append(image, bytes, length);
    }
}

static void put_number(GByteArray *image, uint32_t number)
{
    put(image, &number, sizeof(number));
}

static void put_block(GByteArray *image, const void *bytes, uint32_t length)
{
    put_number(image, length);
    put(image, bytes, length);
}

static const uint8_t *take(Reader *reader, uint32_t length)
{
    const uint8_t *bytes = reader->at;

    if (length > reader->end - reader->at) {
        return NULL;
    }
    reader->at += length;
    return bytes;
}

static bool take_number(Reader *reader, uint32_t *number)
{
    const uint8_t *bytes = take(reader, sizeof(*number));

    if (bytes) {
        memcpy(number, bytes, sizeof(*number));
    }
    return bytes;
}

static const uint8_t *take_block(Reader *reader, uint32_t *length)
{
    return take_number(reader, length) ? take(reader, *length) : NULL;
}

static gboolean put_entry(gpointer index, gpointer context, gpointer image)
{
    uint32_t destinations = GET(context, flow_context__destination_list_size) + GET(context, flow_context__flow_counter_list_size);

    put_number(image, GPOINTER_TO_UINT(index));
    put_block(image, context, OFF_flow_context__destination / 8 + 8 * destinations);
    return false;
}

/* Groups are only numbers and criteria; entries have the length that their destinations take. */
static void put_table(GByteArray *image, FlowTable *table)
{
    GHashTableIter iterator;
    gpointer id, criteria;

    put_number(image, g_hash_table_size(table->groups));
    g_hash_table_iter_init(&iterator, table->groups);
    while (g_hash_table_iter_next(&iterator, &id, &criteria)) {
        put_number(image, GPOINTER_TO_UINT(id));
        put_block(image, criteria, FLOW_CRITERIA);
    }
    put_number(image, g_tree_nnodes(table->entries));
    g_tree_foreach(table->entries, put_entry, image);
}

static bool take_table(Reader *reader, FlowTable *table)
{
    for (int list = 0; list < 2; list++) {
        uint32_t count, number, length;

        if (!take_number(reader, &count)) {
            return false;
        }
        while (count--) {
            const uint8_t *bytes = take_number(reader, &number) ? take_block(reader, &length) : NULL;

            if (!bytes) {
                return false;
            }
            if (list == 0) {
                g_hash_table_replace(table->groups, GUINT_TO_POINTER(number), g_memdup2(bytes, length));
            } else {
                g_tree_replace(table->entries, GUINT_TO_POINTER(number), g_memdup2(bytes, length));
            }
        }
    }
    return true;
}

static void put_pair(GByteArray *image, const QueuePair *pair)
{
    put_block(image, pair->request.message.bytes, pair->request.message.bytes ? pair->request.message.length : 0);
    put_block(image, pair->response.message->data, pair->response.message->len);
}

/* What was not acknowledged is sent again. The clock of the other host was another. */
static bool take_pair(Reader *reader, QueuePair *pair, GByteArray *message)
{
    uint32_t length;
    const uint8_t *bytes;

    pair->running = false;
    pair->request.message.bytes = NULL;
    pair->response.message = message;
    pair->request.deadline = 0;
    pair->request.sent = pair->request.acknowledged;
    bytes = take_block(reader, &length);
    if (!bytes) {
        return false;
    }
    if (pair->request.active) {
        pair->request.message.bytes = g_malloc0(MAX(MAX(length, pair->request.message.length), 1));
        memcpy(pair->request.message.bytes, bytes, length);
    }
    bytes = take_block(reader, &length);
    if (!bytes) {
        return false;
    }
    g_byte_array_append(message, bytes, length);
    return true;
}

static void put_resource(GByteArray *image, Resource *resource)
{
    put_number(image, resource->kind);
    put_number(image, resource->id);
    put_block(image, resource->in, resource->in_length);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i].kind == resource->kind) {
            put(image, (uint8_t *)resource + parts[i].from, parts[i].to - parts[i].from);
        }
    }
    if (resource->kind == OP_CREATE_MKEY) {
        put_block(image, ((MemoryKey *)resource)->translations->data, ((MemoryKey *)resource)->translations->len);
    } else if (resource->kind == OP_CREATE_FLOW_TABLE) {
        put_table(image, (FlowTable *)resource);
    } else if (resource->kind == OP_CREATE_QP) {
        put_pair(image, (QueuePair *)resource);
    }
}

static Resource *create_again(Function *function, uint32_t kind, uint32_t id, const uint8_t *in, uint32_t length)
{
    g_autofree uint8_t *input = g_malloc0(MAX(length, PAGE) + 16), *output = g_malloc0(0x10000);
    Command command = { .opcode = kind, .in = input, .out = output, .in_length = length, .out_length = 0x10000 };

    memcpy(input, in, length);
    function->forced_id = id;
    command_run(function, &command);
    function->forced_id = 0;
    return resource_find(function, kind, id);
}

static bool take_rest(Reader *reader, Resource *resource)
{
    GByteArray *message = resource->kind == OP_CREATE_QP ? ((QueuePair *)resource)->response.message : NULL;
    const uint8_t *bytes;
    uint32_t length;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i].kind == resource->kind) {
            bytes = take(reader, parts[i].to - parts[i].from);
            if (!bytes) {
                return false;
            }
            memcpy((uint8_t *)resource + parts[i].from, bytes, parts[i].to - parts[i].from);
        }
    }
    if (resource->kind == OP_CREATE_MKEY) {
        bytes = take_block(reader, &length);
        g_byte_array_set_size(((MemoryKey *)resource)->translations, 0);
        put(((MemoryKey *)resource)->translations, bytes, bytes ? length : 0);
        return bytes;
    }
    return resource->kind == OP_CREATE_FLOW_TABLE ? take_table(reader, (FlowTable *)resource)
           : message                              ? take_pair(reader, (QueuePair *)resource, message)
                                                  : true;
}

static bool take_resource(Reader *reader, Function *function)
{
    uint32_t kind, id, length;
    const uint8_t *in;
    Resource *resource;

    if (!take_number(reader, &kind) || !take_number(reader, &id) || !(in = take_block(reader, &length))) {
        return false;
    }
    resource = create_again(function, kind, id, in, length);
    return resource && take_rest(reader, resource);
}

static void put_roots(GByteArray *image, Function *function)
{
    GHashTableIter iterator;
    gpointer key, id;

    g_hash_table_iter_init(&iterator, function->roots);
    while (g_hash_table_iter_next(&iterator, &key, &id)) {
        put(image, key, sizeof(uint64_t));
        put(image, id, sizeof(uint32_t));
    }
}

static bool take_root(Reader *reader, Function *function)
{
    const uint8_t *bytes = take(reader, sizeof(uint64_t) + sizeof(uint32_t));

    if (bytes) {
        g_hash_table_replace(function->roots, g_memdup2(bytes, sizeof(uint64_t)),
                             g_memdup2(bytes + sizeof(uint64_t), sizeof(uint32_t)));
    }
    return bytes;
}

/* What the VF's own driver has set. */
static void take_vport(Vport *vport, const Vport *from)
{
    vport->mtu = from->mtu;
    vport->promiscuous_unicast = from->promiscuous_unicast;
    vport->promiscuous_multicast = from->promiscuous_multicast;
    vport->promiscuous_all = from->promiscuous_all;
    vport->min_inline = from->min_inline;
    vport->disabled_loopback = from->disabled_loopback;
    vport->roce = from->roce;
    memcpy(vport->address, from->address, sizeof(vport->address));
    memcpy(vport->addresses, from->addresses, sizeof(vport->addresses));
}

GByteArray *migration_image_save(Function *function)
{
    g_autofree State *state = g_new0(State, 1);
    GByteArray *image = g_byte_array_new();
    GHashTableIter iterator;
    gpointer resource;

    memcpy(state->magic, MAGIC, sizeof(state->magic));
    state->layout = layout();
    state->resources = g_hash_table_size(function->resources);
    state->roots = g_hash_table_size(function->roots);
    state->next_id = function->next_id;
    state->interface_state = function->interface_state;
    state->command_queue = function->command_queue;
    state->initialized = function->initialized;
    memcpy(state->uar_used, function->uar_used, sizeof(state->uar_used));
    memcpy(state->gid, function->gid, sizeof(state->gid));
    state->vport = function->port->vport[function->vport];
    put(image, state, sizeof(*state));
    g_hash_table_iter_init(&iterator, function->resources);
    while (g_hash_table_iter_next(&iterator, NULL, &resource)) {
        put_resource(image, resource);
    }
    put_roots(image, function);
    return image;
}

static void take_state(Function *function, const State *state)
{
    function->next_id = state->next_id;
    function->interface_state = state->interface_state;
    function->command_queue = state->command_queue;
    function->initialized = state->initialized;
    memcpy(function->uar_used, state->uar_used, sizeof(state->uar_used));
    memcpy(function->gid, state->gid, sizeof(state->gid));
    take_vport(&function->port->vport[function->vport], &state->vport);
    vport_context_changed(function->port, function->vport);
}

bool migration_image_load(Function *function, const uint8_t *bytes, uint32_t length)
{
    Reader reader = { bytes, bytes + length };
    const State *state = (const State *)take(&reader, sizeof(State));
    bool whole = true;

    if (!state || memcmp(state->magic, MAGIC, sizeof(state->magic)) || state->layout != layout()) {
        return false;
    }
    function_clear(function);
    for (uint32_t i = 0; whole && i < state->resources; i++) {
        whole = take_resource(&reader, function);
    }
    for (uint32_t i = 0; whole && i < state->roots; i++) {
        whole = take_root(&reader, function);
    }
    take_state(function, state);
    return whole;
}
