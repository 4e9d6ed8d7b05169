"""XXH3's 64-bit hash for the lengths of vfpass's keys. vfpass derives automatic addresses with it, and its values are frozen
since xxHash 0.8.0 (xxhash.h); Python's library lacks it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

MASK = (1 << 64) - 1
# The first 128 bytes of XXH3_kSecret.
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364")


def _word(data, offset):
    return int.from_bytes(data[offset:offset + 8], "little")


def _mix(data, offset, secret):
    low = _word(data, offset) ^ _word(SECRET, secret)
    high = _word(data, offset + 8) ^ _word(SECRET, secret + 8)
    product = low * high
    return (product & MASK) ^ (product >> 64)


def xxh3_64(data):
    """XXH3_64bits with the default secret (XXH3_len_17to128_64b); 17 to 128 bytes, which every key of vfpass has."""
    length = len(data)
    if not 17 <= length <= 128:
        raise ValueError("expected 17 to 128 bytes, found %d" % length)
    total = length * 0x9E3779B185EBCA87
    for pair in range((length - 1) // 32, -1, -1):
        total += _mix(data, 16 * pair, 32 * pair) + _mix(data, length - 16 * (pair + 1), 32 * pair + 16)
    total &= MASK
    total ^= total >> 37
    total = (total * 0x165667919E3779F9) & MASK
    return total ^ (total >> 32)
