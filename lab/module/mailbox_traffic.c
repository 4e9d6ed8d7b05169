// SPDX-License-Identifier: GPL-2.0
/*
 * On the host: print what a guest has counted, see mailbox.h.
 *
 *   mailbox_traffic FILE
 *
 * FILE backs the guest's ivshmem-plain device. Five times a second, prints a
 * line "ADDRESS PACKETS BYTES" for each VF and then a line ".", until the
 * reader closes the pipe.
 */
#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "mailbox.h"

#define PERIOD_NS	(200 * 1000 * 1000)

static const volatile struct mailbox_traffic *map_page(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *page;

	if (fd < 0)
		err(1, "%s", path);
	page = mmap(NULL, sizeof(struct mailbox_traffic), PROT_READ, MAP_SHARED, fd,
		    MAILBOX_TRAFFIC_OFFSET);
	if (page == MAP_FAILED)
		err(1, "%s", path);
	return page;
}

/* Returns false if the guest was writing or has not started to; the caller retries. */
static bool copy_page(struct mailbox_traffic *copy, const volatile struct mailbox_traffic *page)
{
	__u32 before = le32toh(page->sequence);

	atomic_thread_fence(memory_order_seq_cst);
	memcpy(copy, (const void *)page, sizeof(*copy));
	atomic_thread_fence(memory_order_seq_cst);
	return !(before & 1) && before == le32toh(page->sequence) &&
	       le64toh(copy->magic) == MAILBOX_TRAFFIC_MAGIC &&
	       le32toh(copy->version) == MAILBOX_VERSION;
}

static void print_page(const struct mailbox_traffic *copy)
{
	__u32 i;

	for (i = 0; i < le32toh(copy->count) && i < MAILBOX_MAX_ENTRIES; i++)
		printf("%.*s %" PRIu64 " %" PRIu64 "\n",
		       (int)sizeof(copy->entries[i].address), copy->entries[i].address,
		       (uint64_t)le64toh(copy->entries[i].packets),
		       (uint64_t)le64toh(copy->entries[i].bytes));
}

int main(int argc, char **argv)
{
	const struct timespec period = { .tv_nsec = PERIOD_NS };
	const volatile struct mailbox_traffic *page;
	struct mailbox_traffic copy;

	if (argc != 2)
		errx(2, "usage: mailbox_traffic FILE");
	page = map_page(argv[1]);
	for (;;) {
		if (copy_page(&copy, page))
			print_page(&copy);
		puts(".");
		if (fflush(stdout))
			return 0;
		nanosleep(&period, NULL);
	}
}
