/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory keys: virtual addresses of registered memory (mr.c in drivers/infiniband/hw/mlx5). Keys of pages, which CREATE_MKEY or a
 * later request (key_update.c) fills, and physical ones.
 */
#include "connectx.h"

#define RESERVED_KEY 0x1000 /* what QUERY_SPECIAL_CONTEXTS answers: all of the memory */
enum { MODE_PHYSICAL = 0, MODE_PAGES = 1 };

static void memory_key_destroy(Resource *resource)
{
    g_byte_array_unref(((MemoryKey *)resource)->translations);
}

uint8_t *memory_key_context(const MemoryKey *key)
{
    return AT(key->resource.in, create_mkey_in__memory_key_mkey_entry);
}

static uint8_t create(Function *function, Command *command)
{
    MemoryKey *key = resource_new(function, command, 0, sizeof(*key), memory_key_destroy);
    const uint8_t *pages = AT(key->resource.in, create_mkey_in__klm_pas_mtt), *end = key->resource.in + key->resource.in_length;

    key->translations = g_byte_array_new();
    if (end > pages) {
        g_byte_array_append(key->translations, pages, end - pages);
    }
    stl_be_p(command->out + 8, key->resource.id);
    return STATUS_OK;
}

static uint8_t destroy(Function *function, Command *command)
{
    resource_delete(function, OP_CREATE_MKEY, command_id(command));
    return STATUS_OK;
}

static bool access_memory(Function *function, uint64_t address, uint8_t *buffer, uint32_t length, bool write)
{
    return write ? memory_write(function, address, buffer, length) : memory_read(function, address, buffer, length);
}

static bool permits(const uint8_t *context, Access access)
{
    switch (access) {
    case READ_LOCAL:
        return GET(context, mkc__lr);
    case WRITE_LOCAL:
        return GET(context, mkc__lw);
    case READ_REMOTE:
        return GET(context, mkc__rr);
    case WRITE_REMOTE:
        return GET(context, mkc__rw);
    default:
        return GET(context, mkc__a);
    }
}

/* The lower byte of a key is the driver's own and must be that of the key's context. A free key has no memory. */
static MemoryKey *usable_key(Function *function, uint32_t number, uint32_t domain, Access access)
{
    MemoryKey *key = resource_find(function, OP_CREATE_MKEY, number >> 8);
    const uint8_t *context;

    if (!key) {
        return NULL;
    }
    context = memory_key_context(key);
    return !GET(context, mkc__free) && GET(context, mkc__mkey_7_0) == (number & 0xff) &&
                   (domain == EVERY_DOMAIN || domain == GET(context, mkc__pd)) && permits(context, access)
               ? key
               : NULL;
}

/* A page that is not present has no address. */
static bool access_pages(Function *function, const GByteArray *pages, uint64_t offset, unsigned shift, uint8_t *buffer,
                         uint32_t length, bool write)
{
    while (length) {
        uint64_t index = offset >> shift, within = offset & ((1ULL << shift) - 1), address;
        uint32_t part = MIN(length, (1ULL << shift) - within);

        if (index >= pages->len / 8) {
            return false;
        }
        address = ldq_be_p(pages->data + index * 8) & ~(uint64_t)(PAGE - 1);
        if (!address || !access_memory(function, address + within, buffer, part, write)) {
            return false;
        }
        buffer += part;
        offset += part;
        length -= part;
    }
    return true;
}

bool memory_key_access(Function *function, uint32_t number, uint32_t domain, Access access, uint64_t address, uint8_t *buffer,
                       uint32_t length)
{
    bool write = access == WRITE_LOCAL || access == WRITE_REMOTE || access == WRITE_ATOMIC;
    const MemoryKey *key;
    const uint8_t *context;
    uint64_t start, size;
    unsigned shift;

    if (number == RESERVED_KEY && (access == READ_LOCAL || access == WRITE_LOCAL)) {
        return access_memory(function, address, buffer, length, write);
    }
    key = usable_key(function, number, domain, access);
    if (!key) {
        return false;
    }
    context = memory_key_context(key);
    if (GET(context, mkc__access_mode_1_0) == MODE_PHYSICAL) {
        return access_memory(function, address, buffer, length, write);
    }
    start = GET(context, mkc__start_addr);
    size = GET(context, mkc__len);
    shift = GET(context, mkc__log_page_size);
    if (GET(context, mkc__access_mode_1_0) != MODE_PAGES || address < start || length > size ||
        address - start > size - length || shift < 12 || shift > 31) {
        return false;
    }
    return access_pages(function, key->translations, address - start + (start & ((1ULL << shift) - 1)), shift, buffer, length,
                        write);
}

const CommandEntry memory_key_commands[] = {
    { OP_CREATE_MKEY, create },
    { OP_DESTROY_MKEY, destroy },
    { 0, NULL },
};
