/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory: an address of the GPU is where the process has mapped it. */
#include "gpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define DMA_BUF 1 /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */

typedef struct Allocation {
    struct Allocation *next;
    Gpu *gpu;
    uint64_t address, bytes, offset;
} Allocation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Allocation *allocations;

/* The link to the allocation that has these bytes; the caller holds the lock. */
static Allocation **find(uint64_t address, uint64_t bytes)
{
    Allocation **link = &allocations;

    for (; *link; link = &(*link)->next) {
        uint64_t offset = address - (*link)->address;

        if (address >= (*link)->address && bytes <= (*link)->bytes && offset <= (*link)->bytes - bytes) {
            return link;
        }
    }
    return NULL;
}

bool is_gpu_memory(uint64_t address, uint64_t bytes)
{
    bool found;

    pthread_mutex_lock(&lock);
    found = find(address, bytes) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

PUBLIC int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    Gpu *gpu = current_gpu();
    struct stand_in_gpu_memory memory = { .bytes = bytes };
    Allocation *allocation;
    void *mapped;

    if (!gpu || !bytes) {
        return gpu ? INVALID_VALUE : INVALID_CONTEXT;
    }
    if (ioctl(gpu->file, STAND_IN_GPU_ALLOCATE, &memory) != 0) {
        return errno == ENOMEM ? OUT_OF_MEMORY : OPERATING_SYSTEM;
    }
    mapped = mmap(NULL, memory.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, gpu->file, (off_t)memory.offset);
    allocation = malloc(sizeof(*allocation));
    if (mapped == MAP_FAILED || !allocation) {
        ioctl(gpu->file, STAND_IN_GPU_FREE, &memory);
        free(allocation);
        return OPERATING_SYSTEM;
    }
    *address = (uint64_t)(uintptr_t)mapped;
    pthread_mutex_lock(&lock);
    *allocation = (Allocation){ allocations, gpu, *address, memory.bytes, memory.offset };
    allocations = allocation;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

/* Of other processes' allocations the library knows nothing. */
PUBLIC int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    Gpu *gpu = current_gpu();

    if (!gpu) {
        return INVALID_CONTEXT;
    }
    *available = *total = gpu->info.bytes;
    pthread_mutex_lock(&lock);
    for (const Allocation *each = allocations; each; each = each->next) {
        *available -= each->gpu == gpu ? each->bytes : 0;
    }
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

PUBLIC int cuMemFree_v2(uint64_t address)
{
    Allocation **link, *allocation = NULL;

    pthread_mutex_lock(&lock);
    link = find(address, 1);
    if (link && (*link)->address == address) {
        allocation = *link;
        *link = allocation->next;
    }
    pthread_mutex_unlock(&lock);
    if (!allocation) {
        return INVALID_VALUE;
    }
    munmap((void *)(uintptr_t)address, allocation->bytes);
    ioctl(allocation->gpu->file, STAND_IN_GPU_FREE,
          &(struct stand_in_gpu_memory){ .bytes = allocation->bytes, .offset = allocation->offset });
    free(allocation);
    return SUCCESS;
}

PUBLIC int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    if (!is_gpu_memory(to, bytes)) {
        return INVALID_VALUE;
    }
    memcpy((void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}

PUBLIC int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    if (!is_gpu_memory(from, bytes)) {
        return INVALID_VALUE;
    }
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return SUCCESS;
}

PUBLIC int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t count)
{
    if (!is_gpu_memory(address, count)) {
        return INVALID_VALUE;
    }
    memset((void *)(uintptr_t)address, value, count);
    return SUCCESS;
}

PUBLIC int cuMemsetD32_v2(uint64_t address, unsigned value, size_t count)
{
    uint32_t *words = (uint32_t *)(uintptr_t)address;

    if (address % sizeof(*words) || count > SIZE_MAX / sizeof(*words) || !is_gpu_memory(address, count * sizeof(*words))) {
        return INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        words[i] = value;
    }
    return SUCCESS;
}

/* Copies are always complete when they return, which is what the one attribute that can be set asks for. */
PUBLIC int cuPointerSetAttribute(const void *value, int attribute, uint64_t address)
{
    enum { SYNC_MEMOPS = 6 };

    (void)value;
    return attribute == SYNC_MEMOPS && is_gpu_memory(address, 1) ? SUCCESS : INVALID_VALUE;
}

PUBLIC int cuMemGetHandleForAddressRange(void *handle, uint64_t address, size_t bytes, int type, unsigned long long flags)
{
    struct stand_in_gpu_export wanted = { .bytes = bytes, .fd = -1 };
    Allocation **link;
    int file = -1;

    if (type != DMA_BUF || flags) {
        return NOT_SUPPORTED;
    }
    pthread_mutex_lock(&lock);
    link = find(address, bytes);
    if (link) {
        wanted.offset = (*link)->offset + (address - (*link)->address);
        file = (*link)->gpu->file;
    }
    pthread_mutex_unlock(&lock);
    if (file < 0 || ioctl(file, STAND_IN_GPU_EXPORT, &wanted) != 0) {
        return file < 0 || errno == EINVAL ? INVALID_VALUE : OPERATING_SYSTEM;
    }
    *(int *)handle = wanted.fd;
    return SUCCESS;
}
