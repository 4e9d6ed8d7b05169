/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices, their attributes, and contexts, of which each device has only its primary one. */
#include "gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DMA_BUF_SUPPORTED 124
/* With this file the driver is one that exports no DMA-BUF. */
#define WITHOUT_DMA_BUF "/run/stand-in-gpu-without-dma-buf"

Gpu gpus[MAX_GPUS];
int gpu_count = -1;

static _Thread_local Gpu *current;

Gpu *current_gpu(void) { return current; }

static const struct {
    int status;
    const char *name, *text;
} statuses[] = {
    { SUCCESS, "CUDA_SUCCESS", "no error" },
    { INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS" },
    { INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
    { NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
};

static int status_index(int status)
{
    for (unsigned i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        if (statuses[i].status == status) {
            return (int)i;
        }
    }
    return -1;
}

PUBLIC int cuGetErrorName(int status, const char **name)
{
    int index = status_index(status);

    *name = index < 0 ? NULL : statuses[index].name;
    return index < 0 ? INVALID_VALUE : SUCCESS;
}

PUBLIC int cuGetErrorString(int status, const char **text)
{
    int index = status_index(status);

    *text = index < 0 ? NULL : statuses[index].text;
    return index < 0 ? INVALID_VALUE : SUCCESS;
}

static void open_gpus(void)
{
    int count = 0;

    for (int number = 0; number < MAX_GPUS; number++) {
        Gpu *gpu = &gpus[count];
        char path[32];

        snprintf(path, sizeof(path), "/dev/stand-in-gpu%d", number);
        gpu->file = open(path, O_RDWR | O_CLOEXEC);
        if (gpu->file >= 0 && ioctl(gpu->file, STAND_IN_GPU_INFO, &gpu->info) == 0) {
            count++;
        } else if (gpu->file >= 0) {
            close(gpu->file);
        }
    }
    gpu_count = count;
}

/* Both ends of a loopback call it at the same time. A second file would not know the memory of the first. */
PUBLIC int cuInit(unsigned flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (flags) {
        return INVALID_VALUE;
    }
    pthread_once(&once, open_gpus);
    return gpu_count ? SUCCESS : NO_DEVICE;
}

/* As a driver of this version, which has DMA-BUF. */
PUBLIC int cuDriverGetVersion(int *version)
{
    *version = 12000;
    return SUCCESS;
}

PUBLIC int cuDeviceGetCount(int *count)
{
    *count = gpu_count;
    return gpu_count < 0 ? NOT_INITIALIZED : SUCCESS;
}

static int known(int device)
{
    return gpu_count < 0 ? NOT_INITIALIZED : device < 0 || device >= gpu_count ? INVALID_DEVICE : SUCCESS;
}

PUBLIC int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return known(ordinal);
}

PUBLIC int cuDeviceGetName(char *name, int length, int device)
{
    int status = known(device);

    if (status == SUCCESS) {
        snprintf(name, (size_t)length, "%s", gpus[device].info.name);
    }
    return status;
}

PUBLIC int cuDeviceGetPCIBusId(char *text, int length, int device)
{
    int status = known(device);

    if (status == SUCCESS) {
        const struct stand_in_gpu_info *info = &gpus[device].info;

        snprintf(text, (size_t)length, "%04X:%02X:%02X.%u", info->domain, info->bus, info->device, info->function);
    }
    return status;
}

PUBLIC int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    int status = known(device);

    if (status == SUCCESS) {
        *bytes = gpus[device].info.bytes;
    }
    return status;
}

/* An H100 has compute capability 9.0, and its owner sees RDMA writes in order, without a flush. */
PUBLIC int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const struct {
        int attribute, value;
    } attributes[] = {
        { 75 /* COMPUTE_CAPABILITY_MAJOR */, 9 },
        { 76 /* COMPUTE_CAPABILITY_MINOR */, 0 },
        { 116 /* GPU_DIRECT_RDMA_SUPPORTED */, 1 },
        { 117 /* GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS: HOST */, 1 },
        { 118 /* GPU_DIRECT_RDMA_WRITES_ORDERING: OWNER */, 100 },
        { DMA_BUF_SUPPORTED, 1 },
    };
    int status = known(device);

    for (unsigned i = 0; status == SUCCESS && i < sizeof(attributes) / sizeof(*attributes); i++) {
        if (attributes[i].attribute == attribute) {
            *value = attribute == DMA_BUF_SUPPORTED && access(WITHOUT_DMA_BUF, F_OK) == 0 ? 0 : attributes[i].value;
            return SUCCESS;
        }
    }
    return status == SUCCESS ? INVALID_VALUE : status;
}

PUBLIC int cuDevicePrimaryCtxRetain(Gpu **context, int device)
{
    int status = known(device);

    *context = status == SUCCESS ? &gpus[device] : NULL;
    return status;
}

PUBLIC int cuDevicePrimaryCtxRelease_v2(int device) { return known(device); }

PUBLIC int cuCtxSetCurrent(Gpu *context)
{
    current = context;
    return SUCCESS;
}

/* All work is done when its call returns. */
PUBLIC int cuCtxSynchronize(void) { return current ? SUCCESS : INVALID_CONTEXT; }

/* So streams have no work, and need to differ only from the default one. */
PUBLIC int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = current;
    return current ? SUCCESS : INVALID_CONTEXT;
}

PUBLIC int cuStreamQuery(void *stream)
{
    (void)stream;
    return SUCCESS;
}

PUBLIC int cuStreamDestroy_v2(void *stream) { return cuStreamQuery(stream); }

PUBLIC int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    (void)target;
    (void)scope;
    __sync_synchronize();
    return current ? SUCCESS : INVALID_CONTEXT;
}
