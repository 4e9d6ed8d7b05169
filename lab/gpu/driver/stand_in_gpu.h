/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of the driver: devices, allocations of their memory, and their export as DMA-BUF. */
#ifndef STAND_IN_GPU_H
#define STAND_IN_GPU_H

#include <linux/genalloc.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>

#include "stand_in_gpu_uapi.h"

/* Lives until the device is gone and the last file and the last allocation are, too. */
struct gpu {
	struct kref references;
	struct pci_dev *pci;
	struct miscdevice file;
	struct gen_pool *pool; /* of physical addresses */
	phys_addr_t start;
	u64 bytes;
	char name[64];
	char file_name[24];
	bool gone;
};

/* Lives until its file has freed it and no DMA-BUF has it. */
struct allocation {
	struct kref references;
	struct list_head entry; /* of its file */
	struct gpu *gpu;
	u64 offset, bytes;
};

struct gpu_file {
	struct gpu *gpu;
	struct mutex lock; /* of the list */
	struct list_head allocations;
};

void gpu_put(struct gpu *gpu);
void allocation_put(struct allocation *allocation);

/* A new descriptor of a DMA-BUF of this part of the allocation, or a negative error. */
int export_memory(struct allocation *allocation, u64 offset, u64 bytes);

extern const struct file_operations gpu_file_operations;

#endif
