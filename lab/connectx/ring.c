/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queues in the driver's memory. */
#include "connectx.h"

/*
 * The list of page addresses lies in the command that created the queue, of which the resource has a copy. A queue of a program may
 * lie in pages larger than 4 KiB, and begin anywhere in the first: the offset is in units of 1/64 of a page
 * (mlx5_umem_find_best_quantized_pgoff in drivers/infiniband/hw/mlx5/mem.c).
 */
void ring_init(Ring *ring, const Resource *resource, const uint8_t *addresses, uint32_t bytes, uint32_t page_shift,
               uint32_t page_offset)
{
    uint32_t listed = (resource->in + resource->in_length - addresses) / 8;

    ring->page_shift = page_shift;
    ring->start = page_offset << (page_shift - 6);
    ring->page_count = MIN(DIV_ROUND_UP(ring->start + bytes, 1u << page_shift), listed);
    ring->pages = g_new0(uint64_t, ring->page_count);
    for (uint32_t i = 0; i < ring->page_count; i++) {
        ring->pages[i] = ldq_be_p(addresses + i * 8) & ~(uint64_t)(PAGE - 1);
    }
}

void ring_free(Ring *ring)
{
    g_free(ring->pages);
}

/* An entry never crosses a page: its size is a power of two and it is aligned to it. */
static bool ring_address(const Ring *ring, uint32_t offset, uint64_t *address)
{
    uint32_t page;

    offset += ring->start;
    page = offset >> ring->page_shift;
    if (page >= ring->page_count) {
        return false;
    }
    *address = ring->pages[page] + (offset & ((1u << ring->page_shift) - 1));
    return true;
}

bool ring_read(Function *function, const Ring *ring, uint32_t offset, void *buffer, uint32_t length)
{
    uint64_t address;

    return ring_address(ring, offset, &address) && memory_read(function, address, buffer, length);
}

bool ring_write(Function *function, const Ring *ring, uint32_t offset, const void *buffer, uint32_t length)
{
    uint64_t address;

    return ring_address(ring, offset, &address) && memory_write(function, address, buffer, length);
}

/* A send request occupies several basic blocks of 64 bytes and may continue at the start of the queue. */
bool ring_read_wrapped(Function *function, const Ring *ring, uint32_t base, uint32_t size, uint32_t at, uint8_t *buffer,
                       uint32_t length)
{
    while (length) {
        uint32_t part = MIN(length, 64 - at % 64);

        if (!ring_read(function, ring, base + at % size, buffer, part)) {
            return false;
        }
        at += part;
        buffer += part;
        length -= part;
    }
    return true;
}
