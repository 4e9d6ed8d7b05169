/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a VF: the commands that mlx5_vfio_pci gives through the PF (cmd.c and main.c in drivers/vfio/pci/mlx5). What a function
 * is, is in one image (migration_image.c), which is complete only while the function is suspended. Of a running one, a mark is saved: the
 * driver asks for an image at the start of each migration, because it always announces pre-copy. It must not be empty, or the driver
 * fails when QEMU reads it (mlx5vf_get_data_buff_from_pos).
 */
#include "connectx.h"

enum { INITIATOR = 1, RESPONDER = 2 }; /* of suspended: it sends nothing; it takes nothing */
/* Fields that the headers of Linux 6.1 lack: bits of cmd_hca_cap_2, and of QUERY_VHCA_MIGRATION_STATE and SAVE_VHCA_STATE. */
enum { MIGRATABLE = 0x80, MULTI_LOAD = 0xc8, TRACKING_STATE = 0xc9 };
enum { INCREMENTAL = 0x40 };
#define MARK "running"

bool migration_sends(const Function *function)
{
    return !function->suspended;
}

bool migration_receives(const Function *function)
{
    return !(function->suspended & RESPONDER);
}

/* A function that was reset neither is suspended nor listens to the addresses of its last driver. */
void migration_reset(Function *function)
{
    Port *port = function->port;

    function->suspended = 0;
    if (function->vport && port->migration) {
        port->vport[function->vport].addresses[0] = port->vport[function->vport].addresses[1] = 0;
        vport_context_changed(port, function->vport);
    }
}

void migration_capabilities(const Port *port, uint16_t number, uint8_t *caps)
{
    bits_set(caps, MULTI_LOAD, 1, number == 0);
    bits_set(caps, TRACKING_STATE, 1, number == 0);
    bits_set(caps, MIGRATABLE, 1, port->vport[number].migratable);
}

/*
 * devlink sets it for a VF in switchdev mode (mlx5_devlink_port_fn_migratable_set); it is off at first. The driver of a VF reads its
 * capabilities once, so that the firmware refuses a change from INIT_HCA on.
 */
uint8_t migration_set_capabilities(Port *port, uint16_t number, const uint8_t *caps)
{
    bool wanted = bits_get(caps, MIGRATABLE, 1);
    const Function *vf = number >= 1 && number <= port->vfs ? function_of_vport(port, number) : NULL;

    if (number < 1 || number > port->vfs || port->vport[number].migratable == wanted) {
        return STATUS_OK;
    }
    if (vf && vf->initialized) {
        return STATUS_BAD_RESOURCE_STATE;
    }
    port->vport[number].migratable = wanted;
    return STATUS_OK;
}

/* The commands name a function by its VHCA ID, which is its vport's number and one; only the PF's driver gives them. */
static Function *target(Function *function, const Command *command)
{
    uint16_t id = GET(command->in, suspend_vhca_in__vhca_id);

    if (function->vport || !function->port->migration || id < 2 || id > function->port->vfs + 1) {
        return NULL;
    }
    return function_of_vport(function->port, id - 1);
}

static void log_migration(const Function *function, const char *what, uint32_t bytes)
{
    g_autofree char *text = g_strdup_printf("migration: vport %u %s, %u bytes", function->vport, what, bytes);

    log_line(function->port, text);
}

/* SUSPEND numbers initiator and responder 0 and 1, RESUME the other way round (enums in mlx5_ifc.h). */
static uint8_t suspend(Function *function, Command *command)
{
    Function *subject = target(function, command);

    if (!subject) {
        return STATUS_BAD_RESOURCE;
    }
    subject->suspended |= command->modifier == 0 ? INITIATOR : RESPONDER;
    return STATUS_OK;
}

static void resume_queues(Function *function)
{
    g_autoptr(GPtrArray) queues = g_ptr_array_new();
    GHashTableIter iterator;
    Resource *resource;

    g_hash_table_iter_init(&iterator, function->resources);
    while (g_hash_table_iter_next(&iterator, NULL, (void **)&resource)) {
        g_ptr_array_add(queues, resource);
    }
    for (guint i = 0; i < queues->len; i++) {
        resource = queues->pdata[i];
        if (resource->kind == OP_CREATE_EQ) {
            event_queue_look_again(function, (EventQueue *)resource);
        } else if (resource->kind == OP_CREATE_SQ) {
            send_queue_ring(function, resource->id);
        } else if (resource->kind == OP_CREATE_QP) {
            queue_pair_ring(function, (QueuePair *)resource);
        }
    }
}

/* Doorbells that were rung meanwhile were ignored, so everything is looked at: queues, commands, and the link, which may be another. */
static void run_again(Function *function)
{
    if (function->command_queue) {
        resume_queues(function);
        vport_link_event(function->port, function->vport);
        command_queue_ring(function, ~0u);
    }
}

static uint8_t resume(Function *function, Command *command)
{
    Function *subject = target(function, command);
    uint8_t before;

    if (!subject) {
        return STATUS_BAD_RESOURCE;
    }
    before = subject->suspended;
    subject->suspended &= command->modifier == 0 ? ~RESPONDER : ~INITIATOR;
    if (before && !subject->suspended) {
        run_again(subject);
    }
    return STATUS_OK;
}

/* A driver that gives up a migration asks for an image again, with room for none. */
static GByteArray *image_of(Function *function, uint32_t room)
{
    if (function->suspended & RESPONDER) {
        return migration_image_save(function);
    }
    return g_byte_array_append(g_byte_array_new(), (const uint8_t *)MARK, MIN(room, sizeof(MARK)));
}

/* A running function has no changes to report since the last image: its only complete image is the last. */
static uint8_t query(Function *function, Command *command)
{
    Function *subject = target(function, command);
    g_autoptr(GByteArray) image = NULL;

    if (!subject) {
        return STATUS_BAD_RESOURCE;
    }
    if (subject->suspended & RESPONDER || !bits_get(command->in, INCREMENTAL, 1)) {
        image = migration_image_save(subject);
        SET(command->out, query_vhca_migration_state_out__required_umem_size, ROUND_UP(image->len, PAGE));
    }
    return STATUS_OK;
}

/* The buffer is memory of the PF's driver. */
static uint8_t save(Function *function, Command *command)
{
    Function *subject = target(function, command);
    g_autoptr(GByteArray) image = NULL;

    if (!subject) {
        return STATUS_BAD_RESOURCE;
    }
    image = image_of(subject, GET(command->in, save_vhca_state_in__size));
    if (image->len > GET(command->in, save_vhca_state_in__size)) {
        return STATUS_NO_RESOURCES;
    }
    if (image->len && !memory_key_access(function, GET(command->in, save_vhca_state_in__mkey), EVERY_DOMAIN, WRITE_LOCAL,
                                         GET(command->in, save_vhca_state_in__va), image->data, image->len)) {
        return STATUS_BAD_PARAMETER;
    }
    SET(command->out, save_vhca_state_out__actual_image_size, image->len);
    log_migration(subject, "saved", image->len);
    return STATUS_OK;
}

static bool is_mark(const uint8_t *image, uint32_t length)
{
    return length == sizeof(MARK) && !memcmp(image, MARK, length);
}

static uint8_t load(Function *function, Command *command)
{
    Function *subject = target(function, command);
    uint32_t length = GET(command->in, load_vhca_state_in__size);
    g_autofree uint8_t *image = NULL;

    if (!subject || !(subject->suspended & RESPONDER)) {
        return STATUS_BAD_RESOURCE;
    }
    image = g_malloc0(MAX(length, 1));
    if (length && (!memory_key_access(function, GET(command->in, load_vhca_state_in__mkey), EVERY_DOMAIN, READ_LOCAL,
                                      GET(command->in, load_vhca_state_in__va), image, length) ||
                   !(is_mark(image, length) || migration_image_load(subject, image, length)))) {
        return STATUS_BAD_PARAMETER;
    }
    log_migration(subject, "loaded", length);
    return STATUS_OK;
}

const CommandEntry migration_commands[] = {
    { OP_SUSPEND_VHCA, suspend },
    { OP_RESUME_VHCA, resume },
    { OP_QUERY_VHCA_MIGRATION_STATE, query },
    { OP_SAVE_VHCA_STATE, save },
    { OP_LOAD_VHCA_STATE, load },
    { 0, NULL },
};
