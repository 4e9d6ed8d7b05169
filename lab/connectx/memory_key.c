/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory keys: virtual addresses of registered memory (mr.c). Only keys that CREATE_MKEY fills with pages, and physical ones. */
#include "connectx.h"

#define RESERVED_KEY 0x1000 /* what QUERY_SPECIAL_CONTEXTS answers: all of the memory */
enum { MODE_PHYSICAL = 0, MODE_PAGES = 1 };

static bool access_memory(Function *function, uint64_t address, uint8_t *buffer, uint32_t length, bool write)
{
    return write ? memory_write(function, address, buffer, length) : memory_read(function, address, buffer, length);
}

/* The lower byte of a key is the driver's own and must be that of the key's context. */
static const uint8_t *key_context(Function *function, uint32_t key, Resource **resource)
{
    const uint8_t *context;

    *resource = resource_find(function, OP_CREATE_MKEY, key >> 8);
    if (!*resource) {
        return NULL;
    }
    context = AT((*resource)->in, create_mkey_in__memory_key_mkey_entry);
    return GET(context, mkc__mkey_7_0) == (key & 0xff) ? context : NULL;
}

static bool permits(const uint8_t *context, bool write, bool remote)
{
    if (remote) {
        return write ? GET(context, mkc__rw) : GET(context, mkc__rr);
    }
    return write ? GET(context, mkc__lw) : GET(context, mkc__lr);
}

static bool access_pages(Function *function, const Resource *resource, uint64_t offset, unsigned shift, uint8_t *buffer,
                         uint32_t length, bool write)
{
    const uint8_t *pages = AT(resource->in, create_mkey_in__klm_pas_mtt);

    while (length) {
        const uint8_t *page = pages + (offset >> shift) * 8;
        uint64_t within = offset & ((1ULL << shift) - 1);
        uint32_t part = MIN(length, (1ULL << shift) - within);

        if (page + 8 > resource->in + resource->in_length ||
            !access_memory(function, (ldq_be_p(page) & ~(uint64_t)(PAGE - 1)) + within, buffer, part, write)) {
            return false;
        }
        buffer += part;
        offset += part;
        length -= part;
    }
    return true;
}

bool memory_key_access(Function *function, uint32_t key, uint64_t address, uint8_t *buffer, uint32_t length, bool write,
                       bool remote)
{
    Resource *resource;
    const uint8_t *context;
    uint64_t start, size;
    unsigned shift;

    if (key == RESERVED_KEY && !remote) {
        return access_memory(function, address, buffer, length, write);
    }
    context = key_context(function, key, &resource);
    if (!context || !permits(context, write, remote)) {
        return false;
    }
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
    return access_pages(function, resource, address - start + (start & ((1ULL << shift) - 1)), shift, buffer, length, write);
}
