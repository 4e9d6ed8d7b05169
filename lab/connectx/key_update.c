/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests that change a memory key (UMR; umr.c and wr.c in drivers/infiniband/hw/mlx5): so mlx5_ib fills the keys of registered
 * memory, of DMA-BUFs among them, and takes them back. The request names the parts of the key's context that it sets, and brings a
 * piece of the list of pages, in units of 16 bytes.
 */
#include "connectx.h"

#define UNIT 16
#define ALIGNED_UNITS 4 /* the driver fills the last piece up with zeros (MLX5_UMR_MTT_ALIGNMENT) */
/* Offsets in the request (struct mlx5_wqe_umr_ctrl_seg, then struct mlx5_mkey_seg, then the data). */
enum { KEY = 12, FLAGS = 16, UNITS = 20, UNIT_OFFSET = 22, PARTS = 24, UNIT_OFFSET_HIGH = 32, CONTEXT = 64, DATA = 128 };
/* Flags (MLX5_UMR_* in include/linux/mlx5/device.h). */
enum { WITH_OFFSET = 0x10, ONLY_IF_FREE = 0x20, ONLY_IF_IN_USE = 0x40, IS_INLINE = 0x80 };

#define PART(bit, field) { bit, OFF_##field, LEN_##field }
/* Parts of the context (MLX5_MKEY_MASK_* in the same file). */
static const struct {
    uint8_t bit;
    uint16_t offset, length;
} parts[] = {
    PART(0, mkc__len),  PART(0, mkc__length64), PART(1, mkc__log_page_size), PART(6, mkc__start_addr), PART(7, mkc__pd),
    PART(13, mkc__mkey_7_0), PART(14, mkc__qpn), PART(17, mkc__lr), PART(18, mkc__lw), PART(19, mkc__rr),
    PART(20, mkc__rw), PART(21, mkc__a), PART(29, mkc__free),
};

static void set_parts(uint8_t *context, const uint8_t *from, uint64_t mask)
{
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (mask >> parts[i].bit & 1) {
            bits_set(context, parts[i].offset, parts[i].length, bits_get(from, parts[i].offset, parts[i].length));
        }
    }
}

/* The key has room for as many units as it was created with. */
static bool set_pages(Function *function, MemoryKey *key, const uint8_t *wqe, uint32_t size, uint32_t domain)
{
    uint64_t room = ROUND_UP(GET(memory_key_context(key), mkc__translations_octword_size), ALIGNED_UNITS);
    uint64_t units = lduw_be_p(wqe + UNITS), offset = 0;
    uint8_t *to;

    if (!units) {
        return true;
    }
    if (wqe[FLAGS] & WITH_OFFSET) {
        offset = (uint64_t)ldl_be_p(wqe + UNIT_OFFSET_HIGH) << 16 | lduw_be_p(wqe + UNIT_OFFSET);
    }
    if (offset > room || units > room - offset) {
        return false;
    }
    if (key->translations->len < room * UNIT) {
        uint32_t known = key->translations->len;

        g_byte_array_set_size(key->translations, room * UNIT);
        memset(key->translations->data + known, 0, room * UNIT - known);
    }
    to = key->translations->data + offset * UNIT;
    if (wqe[FLAGS] & IS_INLINE) {
        bool fits = units * UNIT <= size - DATA;

        memcpy(to, wqe + DATA, fits ? units * UNIT : 0);
        return fits;
    }
    return size >= DATA + 16 && memory_key_access(function, ldl_be_p(wqe + DATA + 4), domain, READ_LOCAL, ldq_be_p(wqe + DATA + 8), to,
                                                  MIN(units * UNIT, ldl_be_p(wqe + DATA)));
}

RdmaResult key_update(Function *function, uint32_t domain, const uint8_t *wqe, uint32_t size)
{
    MemoryKey *key = resource_find(function, OP_CREATE_MKEY, ldl_be_p(wqe + KEY) >> 8);
    uint8_t *context;
    bool is_free;

    if (!key || size < DATA) {
        return RDMA_KEY_REFUSED;
    }
    context = memory_key_context(key);
    is_free = GET(context, mkc__free);
    if (!GET(context, mkc__umr_en) || (wqe[FLAGS] & ONLY_IF_FREE && !is_free) || (wqe[FLAGS] & ONLY_IF_IN_USE && is_free) ||
        !set_pages(function, key, wqe, size, domain)) {
        return RDMA_KEY_REFUSED;
    }
    set_parts(context, wqe + CONTEXT, ldq_be_p(wqe + PARTS));
    return RDMA_DONE;
}
