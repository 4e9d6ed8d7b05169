/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What both ends of a reliable connection know: its packets and what an acknowledgement says. */
#ifndef CONNECTX_RELIABLE_H
#define CONNECTX_RELIABLE_H

#include "connectx.h"

/* Packets under way without an acknowledgement, and packets of one read request. */
#define WINDOW 64
#define PSN_MASK 0xffffff
#define REMOTE_ADDRESS 16 /* address, key, length */
#define ATOMIC_ADDRESS 28 /* address, key, value to add or to swap in, value to compare with */
#define ATOMIC_LENGTH 8
/* Opcodes of packets: send and write have six each. */
enum { FIRST = 0, MIDDLE = 1, LAST = 2, LAST_IMMEDIATE = 3, ONLY = 4, ONLY_IMMEDIATE = 5, KINDS = 6,
       READ_REQUEST = 0xc, READ_FIRST = 0xd, READ_MIDDLE = 0xe, READ_LAST = 0xf, READ_ONLY = 0x10, ACKNOWLEDGE = 0x11,
       ATOMIC_ACKNOWLEDGE = 0x12, COMPARE_SWAP = 0x13, FETCH_ADD = 0x14 };
/* What an acknowledgement says. */
enum { ACCEPTED = 0x1f, NOT_READY = 0x20, OUT_OF_ORDER = 0x60, INVALID = 0x61, FORBIDDEN = 0x62, FAILED = 0x63 };

/* A packet of the other end that this end did not ask for. */
void request_arrived(Function *function, QueuePair *pair, const RdmaPacket *packet);

#endif
