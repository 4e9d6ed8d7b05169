/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernels. Nothing runs PTX here: the probe's two kernels are recognized by their names, and the processor does what
 * src/probe/gpu/kernels.cu describes, from the same formula (src/probe/transfer/pattern_formula.hpp). A change of theirs has to be
 * made here, too: otherwise the probe's own check finds a difference.
 */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Message {
    uint8_t *bytes;
    uint64_t size, key, mask;
} Message;

typedef struct Arguments {
    uint64_t base, stride, size, slots, first_message, key, last; /* last: inversion of fill, results of check */
} Arguments;

typedef int Kernel(const Arguments *arguments);

typedef struct Event {
    struct timespec at;
} Event;

static uint64_t message_mask(uint64_t message)
{
    return (message & 0xff) * 0x0101010101010101 ^ (message & 0xffffff00) * 0x0000000100000001;
}

static uint64_t pattern_word(const Message *message, uint64_t index)
{
    return (message->key + index * 0x9e3779b97f4a7c15) ^ message->mask;
}

static Message message_of(const Arguments *arguments, uint64_t slot, uint64_t inversion)
{
    return (Message){ (uint8_t *)(uintptr_t)(arguments->base + slot * arguments->stride), arguments->size, arguments->key,
                      message_mask(arguments->first_message + slot) ^ inversion };
}

/* Whether all messages are within the GPU's memory: a kernel that reads elsewhere would end the process. */
static bool is_in_memory(const Arguments *arguments)
{
    uint64_t bytes;

    return !arguments->slots || (!__builtin_mul_overflow(arguments->slots - 1, arguments->stride, &bytes) &&
                                 !__builtin_add_overflow(bytes, arguments->size, &bytes) &&
                                 is_gpu_memory(arguments->base, bytes));
}

static int fill(const Arguments *arguments)
{
    if (!is_in_memory(arguments)) {
        return ILLEGAL_ADDRESS;
    }
    for (uint64_t slot = 0; slot < arguments->slots; slot++) {
        Message message = message_of(arguments, slot, arguments->last);

        for (uint64_t at = 0; at < message.size; at += sizeof(uint64_t)) {
            uint64_t word = pattern_word(&message, at / sizeof(word)), left = message.size - at;

            memcpy(message.bytes + at, &word, left < sizeof(word) ? left : sizeof(word));
        }
    }
    return SUCCESS;
}

/* Adds the wrong bytes of one message to its result: the smallest offset and the number. */
static void check_message(const Message *message, uint64_t *result)
{
    for (uint64_t at = 0; at < message->size; at += sizeof(uint64_t)) {
        uint64_t expected = pattern_word(message, at / sizeof(expected)), seen = 0, left = message->size - at;
        unsigned length = left < sizeof(seen) ? (unsigned)left : sizeof(seen);

        memcpy(&seen, message->bytes + at, length);
        for (unsigned byte = 0; seen != expected && byte < length; byte++) {
            if ((seen ^ expected) >> 8 * byte & 0xff) {
                result[0] = at + byte < result[0] ? at + byte : result[0];
                result[1]++;
            }
        }
    }
}

static int check(const Arguments *arguments)
{
    uint64_t bytes;

    if (!is_in_memory(arguments) || __builtin_mul_overflow(arguments->slots, 2 * sizeof(uint64_t), &bytes) ||
        !is_gpu_memory(arguments->last, bytes)) {
        return ILLEGAL_ADDRESS;
    }
    for (uint64_t slot = 0; slot < arguments->slots; slot++) {
        Message message = message_of(arguments, slot, 0);

        check_message(&message, (uint64_t *)(uintptr_t)arguments->last + 2 * slot);
    }
    return SUCCESS;
}

static const struct {
    const char *name;
    Kernel *kernel;
} kernels[] = { { "vfpassFill", fill }, { "vfpassCheck", check } };

/* Only text that has the probe's kernels can be loaded. The module is a word that is not NULL. */
PUBLIC int cuModuleLoadDataEx(void **module, const char *image, unsigned count, int *options, void **values)
{
    static char loaded;

    (void)count;
    (void)options;
    (void)values;
    for (unsigned i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
        if (!strstr(image, kernels[i].name)) {
            return INVALID_IMAGE;
        }
    }
    *module = &loaded;
    return current_gpu() ? SUCCESS : INVALID_CONTEXT;
}

PUBLIC int cuModuleUnload(void *module) { return module ? SUCCESS : INVALID_HANDLE; }

PUBLIC int cuModuleGetFunction(Kernel **function, void *module, const char *name)
{
    for (unsigned i = 0; module && i < sizeof(kernels) / sizeof(*kernels); i++) {
        if (!strcmp(kernels[i].name, name)) {
            *function = kernels[i].kernel;
            return SUCCESS;
        }
    }
    return module ? NOT_FOUND : INVALID_HANDLE;
}

PUBLIC int cuLaunchKernel(Kernel *function, unsigned columns, unsigned rows, unsigned layers, unsigned x, unsigned y, unsigned z,
                          unsigned shared, void *stream, uint64_t **arguments, void **extra)
{
    (void)shared;
    (void)stream;
    (void)extra;
    if (!function || !arguments || !columns || !rows || !layers || !x || !y || !z) {
        return INVALID_VALUE;
    }
    return function(&(Arguments){ *arguments[0], *arguments[1], *arguments[2], *arguments[3], *arguments[4], *arguments[5],
                                  *arguments[6] });
}

PUBLIC int cuEventCreate(Event **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(**event));
    return *event ? SUCCESS : OUT_OF_MEMORY;
}

PUBLIC int cuEventDestroy_v2(Event *event)
{
    free(event);
    return SUCCESS;
}

PUBLIC int cuEventRecord(Event *event, void *stream)
{
    (void)stream;
    return event && clock_gettime(CLOCK_MONOTONIC, &event->at) == 0 ? SUCCESS : INVALID_HANDLE;
}

PUBLIC int cuEventSynchronize(Event *event) { return event ? SUCCESS : INVALID_HANDLE; }

PUBLIC int cuEventElapsedTime(float *milliseconds, const Event *begin, const Event *end)
{
    if (!begin || !end) {
        return INVALID_HANDLE;
    }
    *milliseconds = (float)((double)(end->at.tv_sec - begin->at.tv_sec) * 1e3 +
                            (double)(end->at.tv_nsec - begin->at.tv_nsec) / 1e6);
    return SUCCESS;
}
