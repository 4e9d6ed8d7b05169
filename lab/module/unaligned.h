/* SPDX-License-Identifier: GPL-2.0 */
/* The header moved in Linux 6.12. */
#ifndef LAB_UNALIGNED_H
#define LAB_UNALIGNED_H

#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif
