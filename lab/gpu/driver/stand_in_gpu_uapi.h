/* SPDX-License-Identifier: GPL-2.0 */
/* The interface of /dev/stand-in-gpuN. Memory of the GPU is mapped with mmap at its offset. */
#ifndef STAND_IN_GPU_UAPI_H
#define STAND_IN_GPU_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define STAND_IN_GPU_UNIT (2u << 20) /* sizes of allocations are rounded up to it, as those of NVIDIA's driver */

struct stand_in_gpu_info {
	__u64 bytes; /* of memory */
	__u32 domain, bus, device, function;
	char name[64]; /* of the device, ended by a zero */
};

/* bytes: in, and rounded up: out; offset: out */
struct stand_in_gpu_memory {
	__u64 bytes, offset;
};

/* Whole pages within one allocation. fd: out */
struct stand_in_gpu_export {
	__u64 bytes, offset;
	__s32 fd;
	__u32 reserved;
};

#define STAND_IN_GPU_INFO _IOR('G', 0, struct stand_in_gpu_info)
#define STAND_IN_GPU_ALLOCATE _IOWR('G', 1, struct stand_in_gpu_memory)
#define STAND_IN_GPU_FREE _IOW('G', 2, struct stand_in_gpu_memory)
#define STAND_IN_GPU_EXPORT _IOWR('G', 3, struct stand_in_gpu_export)

#endif
