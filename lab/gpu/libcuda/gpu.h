/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the lab's libcuda. Statuses are those of the CUDA driver API's reference manual (CUresult). */
#ifndef LAB_GPU_H
#define LAB_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stand_in_gpu_uapi.h"

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    OPERATING_SYSTEM = 304,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    NOT_SUPPORTED = 801,
};

#define PUBLIC __attribute__((visibility("default")))
#define MAX_GPUS 16

typedef struct Gpu {
    int file;
    struct stand_in_gpu_info info;
} Gpu;

extern Gpu gpus[MAX_GPUS];
extern int gpu_count; /* before cuInit: -1 */

/* The GPU of the thread's current context, or NULL without a context. */
Gpu *current_gpu(void);

/* Whether all of these bytes are memory of one allocation. */
bool is_gpu_memory(uint64_t address, uint64_t bytes);

#endif
