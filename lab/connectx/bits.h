/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fields of the command interface: big-endian double words, whose bit 0 is the most significant bit of the first.
 * The macros take names as STRUCTURE__MEMBER; fields.py reads them here and writes fields.h from the kernel's mlx5_ifc.h.
 */
#ifndef CONNECTX_BITS_H
#define CONNECTX_BITS_H

#include "qemu/osdep.h"
#include "qemu/bswap.h"

static inline uint64_t bits_get(const uint8_t *base, unsigned offset, unsigned length)
{
    uint64_t value = 0;

    if (length == 64) {
        return ldq_be_p(base + offset / 8);
    }
    for (unsigned bit = offset; bit < offset + length; bit++) {
        value = value << 1 | (base[bit / 8] >> (7 - bit % 8) & 1);
    }
    return value;
}

static inline void bits_set(uint8_t *base, unsigned offset, unsigned length, uint64_t value)
{
    for (unsigned i = 0; i < length; i++) {
        unsigned bit = offset + i, shift = 7 - bit % 8;

        base[bit / 8] = (base[bit / 8] & ~(1u << shift)) | (value >> (length - 1 - i) & 1) << shift;
    }
}

#define GET(base, field) bits_get(base, OFF_##field, LEN_##field)
#define SET(base, field, value) bits_set(base, OFF_##field, LEN_##field, value)
#define AT(base, field) ((base) + OFF_##field / 8)

#endif
